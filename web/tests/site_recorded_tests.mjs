// Runs whose models a tab cannot run: recorded, shown by the same routes, and said to be so.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { folder, hashOf, near, open, parseCsv, qkv, ready, runs, saved } from "./harness.mjs";
import { browser, page as built, listed, refused, url } from "./site_setup.mjs";

const site = join(folder, "public", "recorded");
const there = new URL("../../recorded/", url).href;
const inputs = join(folder, "inputs.txt");

test("a SentencePiece tokenizer and a large model are recorded, with lines of one's own", () => {
  const large = ["--width", "1024", "--layers", "1", "--heads", "2", "--block", "32", "--batch", "2", "--steps", "1"];
  qkv("train", "text", "--out", join(runs, "large"), "--generated-size", "100", ...large);
  writeFileSync(inputs, "a man\n\nan old dog\n");
  const named = ["translate-small", "large"].map((name) => join(runs, name));
  const said = qkv("site", "--page", built, "--out", site, "--inputs", inputs, ...named);
  assert.match(said, /translate-small is recorded: it has a SentencePiece tokenizer; 10 inputs are shown/);
  assert.match(said, /large is recorded: its weights take 5\d(\.\d)? MB \(--large carries them\); 10 inputs are shown/);
});

test("a recorded run shows what the program shows, and says that it is recorded", async () => {
  const { page, close } = await open(browser, there, { hash: hashOf("explore", { m: "large", x: "an old dog" }) });
  await ready(page, ".map-box");
  assert.match(await page.textContent("#recorded"), /^Recorded: this model is not here\./);
  for (const gone of ["#input", "#checkpoint", "#temperature"]) assert.equal(await page.$(gone), null, gone);
  assert.match(await page.textContent("#try-it"), /^Choose an input/);
  const file = join(folder, "recorded.csv");
  qkv("map", join(runs, "large"), "--input", "an old dog", "--head", "0", "--out", file);
  const want = parseCsv(readFileSync(file, "utf8"));
  const got = parseCsv(String((await saved(page, "csv")).bytes));
  assert.deepEqual(got.columns, want.columns);
  got.values.forEach((row, i) => row.forEach((v, j) => near(v, want.values[i][j], 1e-5, `cell ${i},${j}`)));
  for (const tab of ["Lines", "q · k", "Heads", "Steps"]) {
    await page.click(`[role='tab']:text-is("${tab}")`);
    await page.waitForSelector(`[role='tab'][aria-selected='true']:text-is("${tab}")`);
    assert.equal(await page.$("[role='alert']"), null, tab);
  }
  // Another input is one click away; one that was not recorded is refused in a sentence.
  await page.click(".examples button:text-is('a man')");
  await page.waitForFunction(() => document.querySelector(".examples [aria-pressed='true']")?.textContent === "a man");
  await close();
});

test("an input that was not recorded is refused; translations have their alignment", async () => {
  const { page, close } = await open(browser, there, { hash: hashOf("explore", { m: "large", x: "something else" }) });
  await page.waitForSelector("text=this run is recorded, its model is not here: choose one of its 10 inputs");
  await listed(page, ["large", "translate-small"]);
  await page.goto(there + hashOf("explore", { m: "translate-small" }));
  await page.waitForFunction(() => document.querySelector("#run").value === "translate-small");
  const input = await (await page.waitForSelector(".examples [aria-pressed='true']")).getAttribute("title");
  const want = qkv("predict", join(runs, "translate-small"), input).trim();
  await page.waitForFunction((w) => document.querySelector("#output")?.textContent === w, want);
  await ready(page, ".map-box");
  await page.goto(`${there}#/train`);
  await page.waitForSelector(".chart svg");
  const [got] = await Promise.all([page.waitForEvent("download"), page.click("[aria-label='Download large']")]);
  const root = join(folder, "recordings");
  qkv("runs", "add", await got.path(), "--root", root);
  assert.throws(() => qkv("predict", join(root, "large"), "a man"), /holds recordings and no model: 'qkv serve' shows/);
  await close();
});

test("a line that a recorded run cannot read is named", () => {
  writeFileSync(inputs, "fine\n");
  const missing = refused(
    "--page",
    built,
    "--out",
    join(folder, "s"),
    "--inputs",
    join(folder, "no"),
    join(runs, "large"),
  );
  assert.match(missing, /^qkv: cannot read .*no: .*\n$/);
});
