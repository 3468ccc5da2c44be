// Tests of a site, the page without a server, in a headless Chromium:
// QKV_PROGRAM=build/release/qkv QKV_SITE=build/wasm/site node web/tests/site_test.mjs
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { folder, hashOf, near, open, parseCsv, qkv, ready, runs, saved } from "./harness.mjs";
import "./site_kept_tests.mjs";
import "./site_recorded_tests.mjs";
import {
  address,
  browser,
  page as built,
  line,
  listed,
  named,
  out,
  refused,
  said,
  saidOfSingle,
  screens,
  settled,
  single,
  staticServer,
  url,
  watched,
} from "./site_setup.mjs";

test("the folder says what it takes, and is small", () => {
  for (const name of named) assert.match(said, new RegExp(`${name} [\\d.]+ MB`));
  const size = (name) => statSync(join(out, name)).size;
  assert.ok(size("qkv.wasm") <= 2e6, `qkv.wasm has ${size("qkv.wasm")} bytes`);
  const files = ["index.html", "app.js", "app.css", "worker.js", "qkv.wasm"];
  const zipped = files.map((name) => gzipSync(readFileSync(join(out, name)), { level: 9 }).length);
  const sum = zipped.reduce((a, b) => a + b);
  assert.ok(sum <= 1.2e6, `page and wasm take ${sum} bytes by gzip -9`);
  assert.match(readFileSync(join(out, "licences.txt"), "utf8"), /preact[\s\S]*emscripten/);
});

for (const screen of screens) {
  const { width, height } = screen.viewport;
  test(`${width} x ${height}: a first visit shows a map at once and says what to try; lab and worked example compute`, async () => {
    const begun = performance.now();
    const { page, close } = await open(browser, url, screen);
    await ready(page, ".map-box");
    assert.ok(performance.now() - begun < 10000, "a first visit waits more than 10 seconds");
    assert.match(await page.textContent("#try-it"), /^Type some letters and press Run: [^.]+\.Train it yourself/);
    assert.ok((await page.textContent("#output")).length > 0);
    await page.click("#view-lab");
    await ready(page, ".lab .picture");
    assert.ok((await page.$$(".lab-table tr")).length > 2);
    await page.goto(`${url}#/lab?e=block`);
    await page.waitForSelector(".lab .picture table, .lab .picture canvas");
    assert.equal(await page.$("[role='alert']"), null);
    await close();
  });
}

test("a map of the tab has the numbers of qkv map", async () => {
  const input = "abcdabcdda";
  const { page, close } = await open(browser, url, { hash: hashOf("explore", { m: "reverse-small", x: input, h: 1 }) });
  await ready(page, ".map-box");
  assert.equal(await page.textContent("#output"), qkv("predict", join(runs, "reverse-small"), input).trim());
  const file = join(folder, "map.csv");
  qkv("map", join(runs, "reverse-small"), "--input", input, "--head", "1", "--out", file);
  const want = parseCsv(readFileSync(file, "utf8"));
  const got = parseCsv(String((await saved(page, "csv")).bytes));
  assert.deepEqual(got.columns, want.columns);
  got.values.forEach((row, i) => row.forEach((v, j) => near(v, want.values[i][j], 1e-5, `cell ${i},${j}`)));
  await close();
});

test("every run of the site opens, pictures and drawings too", async () => {
  for (const name of named) {
    const { page, close } = await open(browser, url, { hash: hashOf("explore", { m: name }) });
    await page.waitForSelector(".map-box[data-ready='true'], .shots, .picture canvas");
    await page.waitForFunction(() => document.querySelector("#output")?.textContent);
    assert.equal(await page.$eval("#run", (s) => s.value), name);
    assert.equal(await page.$("[role='alert']"), null, name);
    if (name === "images-small") {
      await page.click(".pad canvas", { position: { x: 10, y: 10 } });
      await page.click("text=Run the drawing");
      await page.waitForFunction(() => !document.querySelector(".examples [aria-pressed='true']"));
      await page.waitForFunction(() => !document.querySelector("form button[type=submit]").disabled);
      assert.equal(await page.$("[role='alert']"), null);
    }
    await close();
  }
});

test("curves of the runs are there; nothing is offered that a tab cannot do", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  await page.waitForSelector(".chart svg");
  await page.click("#new-training");
  await page.selectOption("#new-task", "reverse");
  assert.equal(await page.$("#new-from"), null);
  assert.equal(await page.$("text=server"), null);
  await page.selectOption("#new-task", "translate");
  await page.click(".new-training details summary");
  const kinds = await page.$$eval("#new-tokenizer option", (all) => all.map((o) => o.value));
  assert.deepEqual(kinds, ["word", "char"]);
  await close();
});

test("a model trained in the tab: maps on the way, kept over a reload, downloaded, the same on the command line", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  await page.click("text=Train a small reversal model");
  await page.waitForSelector(`${line("reverse")} em`);
  await page.waitForFunction((l) => /step \d+ of \d+/.test(document.querySelector(l)?.textContent), line("reverse"));
  await page.waitForSelector(".scrubber canvas, .map-box", { timeout: 300000 }); // a checkpoint's map, while it trains
  await settled(page, "reverse");
  await page.reload();
  await page.waitForSelector(line("reverse"));
  const [file] = await Promise.all([page.waitForEvent("download"), page.click("[aria-label='Download reverse']")]);
  assert.equal(file.suggestedFilename(), "reverse.tar");
  const root = join(folder, "added");
  qkv("runs", "add", await file.path(), "--root", root);
  const { exact_match } = JSON.parse(readFileSync(join(root, "reverse", "result.json"), "utf8"));
  assert.ok(exact_match >= 0.99, `exact match ${exact_match}`);
  // The same bits in every program that runs WebAssembly: here a browser and Node.js.
  const weights = readFileSync(join(root, "reverse", "checkpoints", "00000200", "model.safetensors"));
  const script = join(built, "..", "qkv.js");
  const train = fileURLToPath(new URL("../../tests/wasm/train.mjs", import.meta.url));
  const other = execFileSync(process.execPath, [train, script, join(root, "reverse", "config.json"), "200"]);
  assert.equal(createHash("sha256").update(weights).digest("hex"), String(other).trim());
  await page.goto(url + hashOf("explore", { m: "reverse", x: "abcdabcd" }));
  await ready(page, ".map-box");
  assert.equal(await page.textContent("#output"), qkv("predict", join(root, "reverse"), "abcdabcd").trim());
  // The file opens as a run on the page as well.
  await page.goto(`${url}#/train`);
  await page.setInputFiles(
    "#add-run",
    await file.path().then((path) => ({
      name: "reverse.tar",
      mimeType: "application/x-tar",
      buffer: readFileSync(path),
    })),
  );
  await page.waitForSelector(line("reverse-2"));
  await close();
});

test("a training that is cut short continues when the page is opened again; stop saves", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  await page.click("text=Train a small reversal model");
  await page.waitForFunction((l) => /step 1\d\d of/.test(document.querySelector(l)?.textContent), line("reverse"), {
    timeout: 300000,
  });
  await page.reload();
  await page.waitForFunction((l) => /step \d\d\d of/.test(document.querySelector(l)?.textContent), line("reverse"), {
    timeout: 300000,
  });
  await page.click("[aria-label='Stop reverse']");
  await settled(page, "reverse");
  await page.reload();
  await page.waitForSelector(line("reverse"));
  assert.equal(await page.$(`${line("reverse")} em`), null, "a stopped training went on by itself");
  await close();
});

for (const screen of screens) {
  const { width, height } = screen.viewport;
  test(`${width} x ${height}: one file, opened from a disk, shows, computes and trains, and asks for nothing`, async () => {
    const { page, close } = await open(browser, "", screen);
    const asked = watched(page);
    const file = pathToFileURL(single).href;
    await page.goto(file);
    await ready(page, ".map-box");
    await listed(page, ["reverse-small", "odd"]);
    await page.goto(file + hashOf("explore", { m: "reverse-small" }));
    await page.waitForFunction(() => location.hash.includes("x=")); // its example would replace what is typed before
    await page.fill("#input", "abcdabcdda");
    await page.click("form button[type=submit]");
    const want = qkv("predict", join(runs, "reverse-small"), "abcdabcdda").trim();
    await page.waitForFunction((w) => document.querySelector("#output")?.textContent === w, want);
    await ready(page, ".map-box");
    await page.click("#view-lab");
    await ready(page, ".lab .picture");
    assert.ok((await page.$$(".lab-table tr")).length > 2);
    await page.click("#view-train");
    await page.click("text=Train a small reversal model");
    await page.waitForFunction((l) => /step [1-9]\d* of/.test(document.querySelector(l)?.textContent), line("reverse"));
    await page.click("[aria-label='Stop reverse']");
    await settled(page, "reverse");
    assert.equal(await page.$(`${line("reverse")} .error`), null);
    await page.reload(); // kept by the browser, as runs of a folder are
    await page.waitForSelector(line("reverse"));
    assert.equal(await page.$("[role='alert']"), null);
    assert.deepEqual([...new Set(asked.map((a) => a.split("#")[0]))], [file]);
    await close();
  });
}

test("one file says what it takes; another one is replaced, anything else is not", () => {
  assert.match(saidOfSingle, /a course\.html: page [\d.]+ MB, reverse-small [\d.]+ MB, odd [\d.]+ MB\n/);
  const before = readFileSync(single);
  qkv("site", "--page", built, "--single", single, join(runs, "reverse-small"), join(runs, "odd"));
  assert.ok(before.equals(readFileSync(single)), "the same runs give another file");
  const own = join(folder, "own.html");
  writeFileSync(own, "<!doctype html>\n<html lang='en'></html>\n");
  assert.match(refused("--page", built, "--single", own, join(runs, "odd")), /^qkv: cannot write the site to .*\n$/);
  assert.match(readFileSync(own, "utf8"), /lang='en'/);
});

test("a site that was visited opens without its server", async () => {
  const passing = await staticServer(join(folder, "public"));
  const there = address(passing);
  const { page, close } = await open(browser, there, { expect: [/ERR_CONNECTION_REFUSED/] });
  await ready(page, ".map-box");
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
  passing.closeAllConnections();
  await new Promise((done) => passing.close(done));
  await assert.rejects(fetch(there), "the server is still there");
  await page.reload();
  await ready(page, ".map-box");
  await listed(page, named);
  await page.goto(there + hashOf("explore", { m: "reverse-small", x: "abcdabcdda" }));
  const want = qkv("predict", join(runs, "reverse-small"), "abcdabcdda").trim();
  await page.waitForFunction((w) => document.querySelector("#output")?.textContent === w, want);
  await page.click("#view-lab");
  await ready(page, ".lab .picture");
  await close();
});

test("text, images and translations train in the tab", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  for (const [task, settings] of [
    ["text", { "generated-size": 200, block: 32, layers: 1, width: 16, epochs: 1 }],
    ["images", { "train-size": 200, layers: 1, width: 16, epochs: 1 }],
    ["translate", { "generated-size": 200, hidden: 16, embedding: 16, epochs: 1 }],
  ]) {
    await newTraining(page, task, settings);
    await page.click("#start-training");
    await page.waitForSelector(line(task));
    await settled(page, task);
    assert.equal(await page.$(`${line(task)} .error`), null, task);
  }
  await close();
});

/** A new training's form, open at a task. */
async function newTraining(page, task, settings) {
  await page.click("#new-training");
  await page.selectOption("#new-task", task);
  await page.click(".new-training details summary");
  for (const [name, value] of Object.entries(settings)) await page.fill(`#new-${name}`, String(value));
}

test("a pasted text is learnt, kept, and carried by the run that is downloaded", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  const text = "the bold rat sat\non a mat of tin\n".repeat(40);
  await newTraining(page, "text", { block: 16, layers: 1, width: 16, epochs: 2 });
  const file = (name, buffer) => ({ name, mimeType: "text/plain", buffer });
  await page.setInputFiles("#new-text-file", file("picture.txt", Buffer.of(0xff, 0xfe, 0x41)));
  await page.waitForSelector("text=picture.txt is not a text in UTF-8");
  await page.setInputFiles("#new-text-file", file("rat.txt", Buffer.from(text)));
  await page.waitForFunction((t) => document.querySelector("#new-text").value === t, text);
  await page.fill("#new-text", `${text}the end\n`);
  await page.click("#start-training");
  await page.waitForSelector(line("text"));
  await settled(page, "text");
  assert.equal(await page.$(`${line("text")} .error`), null);
  await page.reload();
  const [got] = await Promise.all([page.waitForEvent("download"), page.click("[aria-label='Download text']")]);
  const root = join(folder, "texts");
  qkv("runs", "add", await got.path(), "--root", root);
  assert.equal(readFileSync(join(root, "text", "data.txt"), "utf8"), `${text}the end\n`);
  assert.match(qkv("eval", join(root, "text")), /perplexity/);
  qkv("train", "--resume", join(root, "text"), "--epochs", "3");
  await page.goto(url + hashOf("explore", { m: "text", x: "the bold" }));
  await ready(page, ".map-box");
  // Too short a text is refused in a sentence.
  await page.goto(`${url}#/train`);
  await page.click("#new-training");
  await page.selectOption("#new-task", "text");
  await page.fill("#new-text", "a");
  await page.click("#start-training");
  await page.waitForSelector("text=characters are too few for training");
  await close();
});

test("the policy allows no eval, and nothing asks for it", () => {
  const html = readFileSync(join(out, "index.html"), "utf8");
  assert.match(html, /Content-Security-Policy" content="default-src 'none'; script-src 'self' 'wasm-unsafe-eval';/);
  assert.doesNotMatch(html, /'unsafe-eval'/);
  for (const name of ["app.js", "worker.js"])
    assert.doesNotMatch(readFileSync(join(out, name), "utf8"), /\beval\(|new Function\b/, name);
});

test("no run is loaded from elsewhere, and a link to one that is not here says so", async () => {
  const { page, close } = await open(browser, url, { hash: hashOf("explore", { m: "nobody", x: "abc" }) });
  await page.waitForFunction(() => /nobody/.test(document.body.textContent));
  await close();
});

test("wrong usage is refused in one line", () => {
  assert.match(refused("--out", out, join(runs, "reverse-small")), /^qkv: .*\.\/run site.*\n$/);
  assert.match(refused("--page", built, "--out", runs, join(runs, "odd")), /^qkv: cannot write the site to .*\n$/);
  const inputs = join(folder, "lines.txt");
  writeFileSync(inputs, "abc\n");
  const lines = refused("--page", built, "--out", join(folder, "s"), "--inputs", inputs, join(runs, "odd"));
  assert.match(lines, /^qkv: --inputs is for runs that are recorded, and none of these is.*\n$/);
  assert.match(refused("--page", built, "--out", join(folder, "s"), join(folder, "nothing")), /^qkv: .*\n$/);
  assert.match(
    refused("--page", built, join(runs, "odd")),
    /^qkv: .*--out DIR or --single FILE\.html; see 'qkv site --help'\n$/,
  );
  const both = refused("--page", built, "--out", join(folder, "s"), "--single", join(folder, "s.html"));
  assert.match(both, /^qkv: --out and --single cannot be combined\n$/);
});
