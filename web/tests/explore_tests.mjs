// Explore: what the page shows equals what `qkv map` writes, in every way of looking.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { folder, hashOf, mapOfProgram, near, oddLetters, open, parseCsv, qkv, ready, runs, saved } from "./harness.mjs";

const input = "abcdabcdda";
const at = (state = {}) => hashOf("explore", { m: "reverse-small", x: input, ...state });

/** Where cell (i, j) of the map is on the screen. */
const cellAt = (page, i, j) =>
  page.$eval(
    ".map-box",
    (b, [i, j]) => {
      const r = b.getBoundingClientRect();
      const d = b.dataset;
      const s = Number(d.size);
      return {
        x: r.left + Number(d.left) + (j + 0.5) * s - b.scrollLeft,
        y: r.top + Number(d.top) + (i + 0.5) * s - b.scrollTop,
      };
    },
    [i, j],
  );
const readout = (page) => page.textContent(".readout");

export function exploreTests(site) {
  test("map: numbers under the pointer, CSV and colours equal those of qkv map", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: at({ h: 1 }) });
    await ready(page, ".map-box");
    assert.equal(
      await page.textContent("#output"),
      qkv("predict", join(runs, "reverse-small"), input).trim().split("\n").pop(),
    );
    const want = mapOfProgram("reverse-small", input, "--head", "1");
    const got = parseCsv(String((await saved(page, "csv")).bytes));
    assert.deepEqual(got.columns, want.columns);
    assert.deepEqual(got.rows, want.rows);
    got.values.forEach((row, i) => row.forEach((v, j) => near(v, want.values[i][j], 1e-6, `cell ${i},${j}`)));
    for (const [i, j] of [
      [0, 0],
      [0, want.columns.length - 1],
      [3, 2],
      [want.rows.length - 1, 1],
    ]) {
      const p = await cellAt(page, i, j);
      await page.mouse.move(p.x, p.y);
      await page.waitForFunction((t) => document.querySelector(".readout")?.textContent.includes(t), `(${i}) →`);
      const said = await readout(page);
      assert.ok(said.includes(`(${j}): ${want.values[i][j].toFixed(4)},`), said);
      assert.ok(said.startsWith(`“${want.rows[i]}”`), said);
    }
    await page.mouse.move(5, 5);
    // A weight near 1 is drawn in the darkest colours, one near 0 in white: axes are not swapped.
    const flat = want.values.flatMap((row, i) => row.map((v, j) => ({ i, j, v })));
    const top = flat.reduce((a, b) => (b.v > a.v ? b : a));
    const low = flat.reduce((a, b) => (b.v < a.v ? b : a));
    const shade = async ({ i, j }) => {
      const d = await page.$eval(".map-box", (b) => ({
        left: Number(b.dataset.left),
        top: Number(b.dataset.top),
        size: Number(b.dataset.size),
      }));
      return page.$eval(
        ".map-box canvas",
        (c, [x, y]) => Array.from(c.getContext("2d").getImageData(x, y, 1, 1).data),
        [d.left + j * d.size + 4, d.top + i * d.size + 4],
      );
    };
    assert.ok((await shade(top))[0] < 110, "the largest weight is dark");
    assert.ok((await shade(low))[0] > 240, "the smallest weight is light");
    await close();
  });

  test("map: the keyboard alone reaches every number", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: at() });
    await ready(page, ".map-box");
    const want = mapOfProgram("reverse-small", input, "--head", "0");
    await page.focus(".map-box");
    const expect = (i, j) =>
      page.waitForFunction(
        (t) => document.querySelector(".readout")?.textContent.includes(t),
        `(${j}): ${want.values[i][j].toFixed(4)}`,
      );
    await page.keyboard.press("ArrowDown");
    await expect(0, 0);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await expect(1, 1);
    await page.keyboard.press("End");
    await expect(1, want.columns.length - 1);
    await page.keyboard.press("m");
    await expect(1, want.values[1].indexOf(Math.max(...want.values[1])));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".inspector table");
    assert.match(page.url(), /q=1/);
    await page.keyboard.press("]");
    await page.waitForFunction(() => location.hash.includes("h=1"));
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !location.hash.includes("q="));
    await page.keyboard.press("?");
    await page.waitForSelector(".help");
    await close();
  });

  test("map: scores become the weights by softmax; inspector sums to one", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: at({ what: "scores", q: 2 }) });
    await ready(page, ".map-box");
    const scores = parseCsv(String((await saved(page, "csv")).bytes)).values;
    const weights = mapOfProgram("reverse-small", input, "--head", "0").values;
    scores.forEach((row, i) => {
      const top = Math.max(...row);
      const e = row.map((z) => Math.exp(z - top));
      const sum = e.reduce((a, b) => a + b, 0);
      e.forEach((v, j) => near(v / sum, weights[i][j], 1e-5, `softmax ${i},${j}`));
    });
    await page.selectOption("#what", "weights");
    await page.waitForSelector(".inspector table");
    const numbers = await page.$$eval(".inspector tbody tr", (rows) =>
      rows.map((r) => Number(r.querySelector(".bar-cell + td.n").textContent)),
    );
    near(
      numbers.reduce((a, b) => a + b, 0),
      1,
      1e-3,
      "weights of a row",
    );
    await close();
  });

  test("lines: the weights of a token, whichever side it is on", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: at({ tab: "lines", q: 1, share: 100, off: "none" }),
    });
    await ready(page, ".lines canvas");
    const heads = [0, 1].map((h) => mapOfProgram("reverse-small", input, "--head", String(h)));
    const rows = await page.$$eval(".bars tbody tr", (all) => all.map((r) => r.textContent));
    assert.equal(rows.length, 2);
    heads.forEach((m, h) => assert.ok(rows[h].includes(Math.max(...m.values[1]).toFixed(4)), rows[h]));
    const csv = parseCsv(String((await saved(page, "csv")).bytes));
    for (const [head, , , key, , weight] of csv.lines.slice(1).map((l) => l))
      near(Number(weight), heads[Number(head)].values[1][Number(key)], 1e-6, "line");
    // Opacity is the weight, with one head on or with two.
    const opacities = async () =>
      (String((await saved(page, "svg")).bytes).match(/stroke-opacity="[^"]+"/g) ?? []).map((s) => s.slice(16, -1));
    const both = await opacities();
    await page.click(".head-switch input");
    await page.waitForFunction((n) => Number(document.querySelector(".lines canvas")?.dataset.lines) < n, both.length);
    const one = await opacities();
    assert.ok(one.length > 0 && one.every((o) => both.includes(o)));
    const box = await (await page.$(".lines canvas")).boundingBox();
    await page.mouse.move(box.x + box.width - 60, box.y + 90);
    await page.waitForFunction(() => document.querySelector(".bars caption")?.textContent.includes("is looked at by"));
    await close();
  });

  test("heads: a thumbnail for each; entropies are those of the map", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: at({ tab: "heads" }) });
    await page.waitForSelector(".heads .figures .chart[data-ready='true']");
    assert.equal((await page.$$(".thumbs.large button.thumb")).length, 2);
    const csv = parseCsv(String((await saved(page, "csv")).bytes));
    for (const h of [0, 1]) {
      const m = mapOfProgram("reverse-small", input, "--head", String(h)).values;
      const entropy =
        m
          .map((row) => row.reduce((a, p) => a - (p > 0 ? p * Math.log(p) : 0), 0) / Math.log(row.length))
          .reduce((a, b) => a + b, 0) / m.length;
      near(Number(csv.lines[1 + h][2]), entropy, 1e-5, `entropy of head ${h}`);
    }
    assert.match(String((await saved(page, "svg")).bytes), /<svg[\s\S]*entropy[\s\S]*<\/svg>/);
    await page.click(".thumbs.large button.thumb >> nth=1");
    await ready(page, ".map-box");
    assert.match(page.url(), /h=1/);
    await close();
  });

  test("steps: weights and candidates of each token written", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: at({ tab: "steps", q: 0 }) });
    await ready(page, ".steps");
    const want = mapOfProgram("reverse-small", input, "--head", "0");
    assert.equal((await page.$$(".timeline .token")).length, want.rows.length);
    for (let step = 0; step < 3; step++) {
      const largest = Math.max(...want.values[step]).toFixed(4);
      await page.waitForFunction(
        (t) => document.querySelector(".step-tables section td.n")?.textContent === t,
        largest,
      );
      const p = await page.$$eval(".step-tables section:nth-child(2) td.n", (all) =>
        all.map((c) => Number(c.textContent)),
      );
      near(
        p.reduce((a, b) => a + b, 0),
        1,
        2e-3,
        "probabilities",
      );
      assert.equal(await page.textContent(".step-tables .chosen th"), want.rows[step]);
      await page.focus(".steps");
      await page.keyboard.press("ArrowRight");
    }
    await page.click("text=Play");
    await page.waitForFunction((n) => location.hash.includes(`q=${n - 1}`), want.rows.length);
    await close();
  });

  test("steps: a click on a candidate makes the model say it, and it continues from there", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: at({ tab: "steps", q: 1 }) });
    await ready(page, ".steps");
    const free = await page.$$eval(".timeline .token", (all) => all.map((t) => t.textContent));
    const other = await page.textContent(".step-tables section:nth-child(2) tr:nth-child(2) th");
    assert.notEqual(other, free[1]);
    await page.click(".step-tables section:nth-child(2) tr:nth-child(2) button");
    await page.waitForSelector("#forced");
    await page.waitForFunction((t) => document.querySelectorAll(".timeline .token")[1]?.textContent === t, other);
    assert.equal(await page.textContent(".timeline .token >> nth=0"), free[0]);
    assert.equal(await page.textContent(".step-tables .chosen th"), other);
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await page.waitForFunction((t) => document.querySelectorAll(".timeline .token")[1]?.textContent === t, other);
    await page.click("text=Let it choose");
    await page.waitForFunction((t) => document.querySelectorAll(".timeline .token")[1]?.textContent === t, free[1]);
    await close();
  });

  test("files: SVG, PNG and a page that works without this program", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: at() });
    await ready(page, ".map-box");
    const svg = String((await saved(page, "svg")).bytes);
    const errors = await page.evaluate(
      (t) => new DOMParser().parseFromString(t, "image/svg+xml").querySelector("parsererror")?.textContent ?? "",
      svg,
    );
    assert.equal(errors, "");
    assert.match(svg, /<image[^>]+href="data:image\/png/);
    const png = (await saved(page, "png")).bytes;
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    assert.ok(png.readUInt32BE(16) > 500 && png.readUInt32BE(20) > 300, "a picture of some size");
    const html = await saved(page, "html");
    assert.match(html.name, /^[\w-]+\.html$/);
    await close();
    const file = join(folder, "sent.html");
    writeFileSync(file, html.bytes);
    const offline = await open(site.browser, "", { offline: true });
    await offline.page.goto(`file://${file}`);
    const box = await offline.page.$eval("#cells", (c) => {
      const r = c.getBoundingClientRect();
      return { x: r.left + 3, y: r.top + 3 };
    });
    await offline.page.mouse.move(box.x, box.y);
    const want = mapOfProgram("reverse-small", input, "--head", "0");
    assert.ok((await offline.page.textContent("#value")).endsWith(want.values[0][0].toFixed(4)));
    await offline.page.context().close();
  });

  test("a link restores the view, odd letters and all; markup stays text", async () => {
    const odd = "</script><b>&0=😀";
    assert.ok(Array.from(odd).every((c) => oddLetters.includes(c)));
    const first = await open(site.browser, site.url, { hash: hashOf("explore", { m: "odd" }) });
    await ready(first.page, ".map-box");
    await first.page.fill("#input", odd);
    await first.page.press("#input", "Enter");
    await first.page.waitForFunction(
      (n) => document.querySelector(".map-box")?.dataset.cols === String(n),
      Array.from(odd).length,
    );
    await first.page.selectOption("#scale", "lift");
    await first.page.focus(".map-box");
    for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await first.page.keyboard.press(key);
    await first.page.waitForFunction(() => location.hash.includes("q=1"));
    const link = first.page.url();
    const csv = String((await saved(first.page, "csv")).bytes);
    const html = String((await saved(first.page, "html")).bytes);
    assert.equal((html.match(/<script/g) ?? []).length, 2, "tokens stay data in the saved page");
    await first.close();
    const second = await open(site.browser, link);
    await ready(second.page, ".map-box");
    assert.equal(await second.page.inputValue("#input"), odd);
    assert.equal(await second.page.inputValue("#scale"), "lift");
    await second.page.waitForSelector(".tinted span");
    assert.equal(String((await saved(second.page, "csv")).bytes), csv);
    assert.equal(await second.page.$("main script"), null);
    assert.equal(await second.page.$(".tinted b"), null);
    await second.close();
    const bad = await open(site.browser, site.url, { hash: at({ l: "x", tab: "nothing" }) });
    await ready(bad.page, ".map-box");
    assert.match(await bad.page.textContent(".banner.notice"), /could not be read/);
    await bad.close();
  });

  test("a link to another run takes that run's examples, not those on the screen", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: hashOf("explore", { m: "odd" }) });
    await ready(page, ".map-box");
    await page.goto(site.url + hashOf("explore", { m: "reverse-small" }));
    await page.waitForFunction(() => /^[abcd]+$/.test(document.querySelector("#input")?.value));
    await ready(page, ".map-box");
    await page.waitForFunction(() => /^[abcd]+$/.test(document.querySelector(".examples .chip")?.title));
    await close();
  });

  test("thousands of tokens stay usable, and are left out of the link", async () => {
    const long = "abcd".repeat(600);
    const { page, close } = await open(site.browser, site.url, { hash: at() });
    await ready(page, ".map-box");
    await page.fill("#input", long);
    await page.press("#input", "Enter");
    await page.waitForFunction(() => Number(document.querySelector(".map-box")?.dataset.pool) > 1);
    assert.match(await page.textContent(".banner.notice"), /longer than 2000/);
    assert.ok(page.url().length < 500);
    assert.ok((await page.$$eval("*", (all) => all.length)) < 2000, "few elements");
    for (let i = 0; i < 6; i++) await page.click("[aria-label='Larger']");
    assert.equal(await page.$eval(".map-box", (b) => b.dataset.pool), "1");
    await page.$eval(".map-box", (b) => b.scrollTo(2000, 1500));
    await page.focus(".map-box");
    await page.keyboard.press("End");
    await page.waitForFunction(() => document.querySelector(".readout")?.textContent.includes("(2399):"));
    await page.click("text=Lines");
    await ready(page, ".lines canvas");
    assert.ok((await page.$eval(".lines canvas", (c) => c.clientHeight)) < 2000);
    await close();
  });

  test("an input the model cannot read: the server's sentence at the field, and a way to continue", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: at(), expect: [/400/] });
    await ready(page, ".map-box");
    await page.fill("#input", "xyz");
    await page.press("#input", "Enter");
    await page.waitForSelector("form .error");
    assert.match(await page.textContent("form .error"), /x/);
    await page.fill("#input", "abba");
    await page.press("#input", "Enter");
    await page.waitForFunction(
      () => !document.querySelector("form .error") && document.querySelector(".map-box")?.dataset.cols === "4",
    );
    const options = await page.$$eval("#run option", (all) => all.map((o) => o.textContent));
    assert.ok(
      options.some((o) => o.includes("broken (cannot be read)")),
      options.join(),
    );
    await close();
  });
}
