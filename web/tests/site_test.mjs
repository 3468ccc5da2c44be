// Tests of a site, the page without a server, in a headless Chromium:
// QKV_PROGRAM=build/release/qkv QKV_SITE=build/wasm/site node web/tests/site_test.mjs
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import test, { after } from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import {
  cleanUp,
  folder,
  hashOf,
  launch,
  near,
  open,
  parseCsv,
  qkv,
  ready,
  runs,
  saved,
  trainModels,
} from "./harness.mjs";

const page = process.env.QKV_SITE;
if (!page) throw new Error("set QKV_SITE to the folder that 'ninja qkv_site' made");
const out = join(folder, "public", "a course", "page");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** A web server as plain as they come: files, no special headers, no type for WebAssembly. */
function staticServer(root) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://x").pathname);
    const file = join(root, normalize(path), path.endsWith("/") ? "index.html" : "");
    try {
      const body = readFileSync(file);
      response.writeHead(200, { "Content-Type": types[extname(file)] ?? "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}
const address = (server) => `http://127.0.0.1:${server.address().port}/a%20course/page/`;

after(cleanUp);
trainModels();
const named = ["reverse-small", "odd", "images-small", "text-small"];
const said = qkv("site", "--page", page, "--out", out, ...named.map((name) => join(runs, name)));
const server = await staticServer(join(folder, "public"));
after(() => server.close());
const url = address(server);
const single = join(folder, "public", "a course.html");
const saidOfSingle = qkv("site", "--page", page, "--single", single, join(runs, "reverse-small"), join(runs, "odd"));
const browser = await launch();

const screens = [
  { viewport: { width: 1280, height: 800 } },
  { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
];

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
  test(`${width} x ${height}: a first visit shows a map at once; lab and worked example compute`, async () => {
    const { page, close } = await open(browser, url, screen);
    await ready(page, ".map-box");
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
  await close();
});

const line = (run) => `.run[data-run='${run}']`;
const settled = (page, run) =>
  page.waitForFunction((l) => document.querySelector(l) && !document.querySelector(`${l} em`), line(run), {
    timeout: 900000,
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

test("a training that is cut short continues when the page is opened again; stop saves; a run trains in one tab at a time", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  await page.click("text=Train a small reversal model");
  await page.waitForFunction((l) => /step 1\d\d of/.test(document.querySelector(l)?.textContent), line("reverse"), {
    timeout: 300000,
  });
  await page.reload();
  await page.waitForFunction((l) => /step \d\d\d of/.test(document.querySelector(l)?.textContent), line("reverse"), {
    timeout: 300000,
  });
  const other = await page.context().newPage();
  await other.goto(`${url}#/train`);
  await other.waitForSelector(line("reverse"));
  assert.equal(await other.$(`${line("reverse")} em`), null, "another tab trains it too");
  await other.close();
  await page.click("[aria-label='Stop reverse']");
  await settled(page, "reverse");
  await page.reload();
  await page.waitForSelector(line("reverse"));
  assert.equal(await page.$(`${line("reverse")} em`), null, "a stopped training went on by itself");
  await close();
});

/** What `qkv site` says when it refuses. */
const refused = (...words) => {
  try {
    qkv("site", ...words);
  } catch (e) {
    return e.stderr;
  }
  return "";
};

/** Watches what a page asks for; pages made of blobs and data ask nobody. */
function watched(page) {
  const asked = [];
  page.context().on("request", (r) => /^(blob|data):/.test(r.url()) || asked.push(r.url()));
  return asked;
}

/** Waits until these runs can be chosen: the first is there at once, the others follow. */
const listed = (page, names) =>
  page.waitForFunction((all) => all.every((name) => document.querySelector(`#run option[value='${name}']`)), names);

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
  qkv("site", "--page", page, "--single", single, join(runs, "reverse-small"), join(runs, "odd"));
  assert.ok(before.equals(readFileSync(single)), "the same runs give another file");
  const own = join(folder, "own.html");
  writeFileSync(own, "<!doctype html>\n<html lang='en'></html>\n");
  assert.match(refused("--page", page, "--single", own, join(runs, "odd")), /^qkv: cannot write the site to .*\n$/);
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
    await page.click("#new-training");
    await page.selectOption("#new-task", task);
    await page.click(".new-training details summary");
    for (const [name, value] of Object.entries(settings)) await page.fill(`#new-${name}`, String(value));
    await page.click("#start-training");
    await page.waitForSelector(line(task));
    await settled(page, task);
    assert.equal(await page.$(`${line(task)} .error`), null, task);
  }
  await close();
});

test("no run is loaded from elsewhere, and a link to one that is not here says so", async () => {
  const { page, close } = await open(browser, url, { hash: hashOf("explore", { m: "nobody", x: "abc" }) });
  await page.waitForFunction(() => /nobody/.test(document.body.textContent));
  await close();
});

test("wrong usage is refused in one line", () => {
  assert.match(refused("--out", out, join(runs, "reverse-small")), /^qkv: .*\.\/run site.*\n$/);
  assert.match(refused("--page", page, "--out", runs, join(runs, "odd")), /^qkv: cannot write the site to .*\n$/);
  assert.match(refused("--page", page, "--out", join(folder, "s"), join(runs, "translate-small")), /SentencePiece/);
  assert.match(refused("--page", page, "--out", join(folder, "s"), join(folder, "nothing")), /^qkv: .*\n$/);
  assert.match(refused("--page", page, join(runs, "odd")), /^qkv: .*--out DIR or --single FILE\.html\n$/);
  const both = refused("--page", page, "--out", join(folder, "s"), "--single", join(folder, "s.html"));
  assert.match(both, /^qkv: --out and --single cannot be combined\n$/);
});
