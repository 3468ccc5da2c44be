// What a newcomer meets: maps that can be read at every length, lines that hold still, exports that are whole.
import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { folder, hashOf, mapOfProgram, near, open, parseCsv, qkv, ready, runs, saved } from "./harness.mjs";

const letters = (n) => "abcdabdcbacd".repeat(Math.ceil(n / 12)).slice(0, n);
const explore = (state) => hashOf("explore", { m: "reverse-small", ...state });
const german = "der alte Mann sieht zwei Kinder";

/** Pixels of the map's cells that are not nearly white. */
const inked = (page) =>
  page.$eval(".map-box canvas", (c) => {
    const b = c.parentElement.dataset;
    const [x, y] = [Number(b.left) * devicePixelRatio, Number(b.top) * devicePixelRatio];
    const { data } = c.getContext("2d").getImageData(x, y, c.width - x, c.height - y);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] < 200) n++;
    return n;
  });

export function newcomerTests(site) {
  test("colours go up to the largest weight, the legend says so, and 0 to 1 is one click away", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: explore({ x: letters(250) }) });
    await ready(page, ".map-box");
    const want = mapOfProgram("reverse-small", letters(250), "--head", "0").values.flat();
    const largest = Math.max(...want.filter((v) => !Number.isNaN(v)));
    assert.match(
      await page.textContent(".colorbar"),
      new RegExp(`${Number(largest.toPrecision(3))}, the largest weight`),
    );
    const before = await inked(page);
    assert.ok(before > 500, `a map of 250 tokens is not white: ${before} pixels of ink`);
    await page.click("#scale-switch");
    await page.waitForFunction(() => /0\s*1/.test(document.querySelector(".colorbar")?.textContent));
    assert.match(page.url(), /scale=abs/);
    assert.ok((await inked(page)) < before);
    assert.equal(await page.inputValue("#scale"), "abs");
    await page.click("#scale-switch");
    await page.waitForFunction(() => !location.hash.includes("scale="));
    await close();
  });

  test("a causal map is coloured though its first row has a weight of 1, and the legend says where colours end", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "text-small", x: german }),
    });
    await ready(page, ".map-box");
    const [, end] = /0\s+([\d.]+) and above \(1 where few keys are seen\)/.exec(await page.textContent(".colorbar"));
    assert.ok(Number(end) > 0 && Number(end) < 1);
    const before = await inked(page);
    await page.click("#scale-switch");
    await page.waitForFunction(() => location.hash.includes("scale=abs"));
    assert.ok((await inked(page)) < before);
    await close();
  });

  test("in a long input the chosen token is in sight in every view", async () => {
    const state = { m: "translate-small", s: "encoder", x: `${german} `.repeat(30), q: "250" };
    const view = async (tab, selector) => {
      const { page, close } = await open(site.browser, site.url, { hash: hashOf("explore", { ...state, tab }) });
      await page.waitForSelector(selector);
      return { page, close };
    };
    const lines = await view("lines", ".focus-weights td b");
    const first = Number(await lines.page.inputValue("input[aria-label='First query in sight']"));
    assert.ok(first <= 250 && first + 64 > 250, String(first));
    await lines.close();
    const steps = await view("steps", ".timeline .here");
    assert.equal(await steps.page.$eval(".timeline .here", (b) => b.getAttribute("aria-current")), "step");
    assert.match(await steps.page.textContent(".timeline"), /^… /);
    await steps.close();
    const cell = await view("cell", ".choose .tinted .here");
    const [box, token] = await cell.page.$$eval(".choose .tinted, .choose .tinted .here", (all) =>
      all.slice(0, 2).map((e) => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]),
    );
    assert.ok(token[0] >= box[0] && token[1] <= box[1], `${token} in ${box}`);
    await cell.close();
  });

  test("the map fills its panel; up to 60 tokens every label is there and the map scrolls", async () => {
    for (const [width, height] of [
      [1280, 800],
      [390, 844],
    ]) {
      for (const n of [5, 47]) {
        const { page, close } = await open(site.browser, site.url, {
          viewport: { width, height },
          hash: explore({ x: letters(n) }),
        });
        await ready(page, ".map-box");
        const m = await page.$eval(".map-box", (b) => ({
          size: Number(b.dataset.size),
          across: Number(b.dataset.left) + Number(b.dataset.cols) * Number(b.dataset.size),
          down: Number(b.dataset.top) + Number(b.dataset.rows) * Number(b.dataset.size),
          width: b.clientWidth,
          height: b.clientHeight,
          scrolls: b.scrollWidth > b.clientWidth || b.scrollHeight > b.clientHeight,
        }));
        const where = `${n} tokens at ${width} x ${height}: ${JSON.stringify(m)}`;
        assert.ok(m.size >= 12, where); // a label needs 11 pixels
        assert.ok(m.across > 0.85 * m.width || m.down > 0.85 * m.height, where);
        assert.equal(m.scrolls, m.across > m.width || m.down > m.height, where);
        await close();
      }
    }
  });

  test("long axes show positions, on the screen and in the picture", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: explore({ x: letters(250) }) });
    await ready(page, ".map-box");
    const svg = String((await saved(page, "svg")).bytes);
    for (const position of [100, 200]) assert.match(svg, new RegExp(`>${position}</text>`));
    assert.match(svg, />20 [abcd]<\/text>/); // this model writes some 30 letters at most
    await close();
  });

  test("an input that is longer than the model reads says what was left out", async () => {
    const long = "the old man sees two children ".repeat(12);
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "text-small", x: long, tab: "map" }),
    });
    await ready(page, ".map-box");
    assert.match(await page.textContent("#notice"), /reads at most 48 tokens[\s\S]*the last \d+ are shown/);
    assert.ok((await page.$eval(".map-box", (b) => Number(b.dataset.cols))) <= 48);
    assert.ok((await page.textContent("#output")).length > 5);
    await close();
  });

  test("lines: one head and the strongest keys unless asked otherwise; hovering moves nothing", async () => {
    const input = letters(30);
    const { page, close } = await open(site.browser, site.url, { hash: explore({ x: input, tab: "lines" }) });
    await ready(page, ".lines canvas");
    const rows = mapOfProgram("reverse-small", input, "--head", "0").rows.length;
    assert.equal(await page.$eval(".lines canvas", (c) => Number(c.dataset.lines)), 3 * Math.min(64, rows));
    assert.deepEqual(await page.$$eval(".head-switch input", (all) => all.map((i) => i.checked)), [true, false]);
    const place = () => page.$eval(".lines canvas", (c) => JSON.stringify(c.getBoundingClientRect()));
    const still = await place();
    const box = await (await page.$(".lines canvas")).boundingBox();
    for (const [x, y] of [
      [60, 60],
      [60, 120],
      [box.width - 60, 90],
    ]) {
      await page.mouse.move(box.x + x, box.y + y);
      await page.waitForSelector(".focus-weights .bars");
      assert.equal(await place(), still, "the diagram stands still");
    }
    await page.mouse.move(5, 5);
    await page.waitForFunction(() => !document.querySelector(".focus-weights .bars"));
    assert.equal(await place(), still);
    await page.selectOption("#share", "100");
    await page.waitForFunction((n) => Number(document.querySelector(".lines canvas")?.dataset.lines) > n, 3 * rows);
    await close();
  });

  test("scores: the view says what they are, and its rows open", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: explore({ x: "abcdabcd", what: "scores" }) });
    await ready(page, ".map-box");
    assert.match(await page.textContent(".picture > .caption"), /how well a key fits a query/);
    const p = await page.$eval(".map-box", (b) => {
      const r = b.getBoundingClientRect();
      const s = Number(b.dataset.size);
      return { x: r.left + Number(b.dataset.left) + 1.5 * s, y: r.top + Number(b.dataset.top) + 2.5 * s };
    });
    await page.mouse.click(p.x, p.y);
    await page.waitForSelector(".inspector tbody tr");
    assert.match(await page.textContent(".inspector thead"), /weight[\s\S]*score/);
    const weights = mapOfProgram("reverse-small", "abcdabcd", "--head", "0").values[2];
    assert.ok((await page.textContent(".inspector table")).includes(Math.max(...weights).toFixed(4)));
    await close();
  });

  test("a rollout has no head: the title says which layers, and all of them are taken at first", async () => {
    for (const [run, input, turn] of [
      ["text-small", "the old man", (page) => page.selectOption("#what", "rollout")],
      ["images-small", "val:3", (page) => page.click("text=rollout through the layers")],
    ]) {
      const tab = run === "text-small" ? { tab: "map" } : {};
      const { page, close } = await open(site.browser, site.url, {
        hash: hashOf("explore", { m: run, x: input, ...tab }),
      });
      await page.waitForSelector("#head");
      await turn(page);
      await page.waitForFunction(() => /rollout to layer 1$/.test(document.querySelector("h2").firstChild.textContent));
      assert.equal(await page.$("#head"), null);
      assert.equal(await page.$eval("#layer", (s) => s.selectedOptions[0].textContent), "to layer 1");
      await page.waitForFunction(() =>
        /A rollout multiplies the layers/.test(document.querySelector("main").innerText),
      );
      await close();
    }
  });

  test("colours relative to uniform end at the largest weight's, and the legend says so", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: explore({ x: "abcdabcd", scale: "lift" }) });
    await ready(page, ".map-box");
    const rows = mapOfProgram("reverse-small", "abcdabcd", "--head", "0").values;
    const most = 2 ** Math.ceil(Math.log2(Math.max(...rows.flatMap((row) => row.map((v) => v * row.length)))));
    assert.match(await page.textContent(".colorbar"), new RegExp(`^1/${most} × uniform.* ${most} × uniform$`));
    await close();
  });

  test("an alignment is a mean: it has no layer, no head and no scores", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "translate-small", x: german, s: "alignment", tab: "map" }),
    });
    await ready(page, ".map-box");
    for (const text of [await page.textContent(".picture h2"), await page.$eval(".map-box", (b) => b.ariaLabel)])
      assert.doesNotMatch(text, /layer \d|head \d/);
    assert.equal(await page.$("#what"), null);
    for (const tab of ["q · k", "Heads"]) assert.equal(await page.$(`[role='tab'] >> text=${tab}`), null);
    assert.doesNotMatch(String((await saved(page, "svg")).bytes), /layer \d|head \d/);
    await close();
  });

  test("a saved page has its whole title, input and output, and its caption once", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: explore({ x: "abcdabcdda" }) });
    await ready(page, ".map-box");
    const { bytes } = await saved(page, "html");
    const output = await page.textContent("#output");
    const svg = String((await saved(page, "svg")).bytes);
    await close();
    const file = join(folder, "whole.html");
    writeFileSync(file, bytes);
    const sent = await open(site.browser, "", { viewport: { width: 1000, height: 800 }, offline: true });
    await sent.page.goto(`file://${file}`);
    const text = await sent.page.innerText("body");
    assert.equal(
      await sent.page.textContent("h1"),
      "reverse-small: cross-attention: decoder → source, layer 0, head 0",
    );
    assert.deepEqual(await sent.page.$$eval("dd", (all) => all.slice(1).map((d) => d.textContent)), [
      "abcdabcdda",
      output,
    ]);
    assert.equal(text.split("A row's largest weight is").length - 1, 1);
    assert.equal(text.split("decoder → source").length - 1, 1, "the title once");
    // No text of the picture leaves it.
    for (const markup of [svg]) {
      await sent.page.setContent(markup);
      const out = await sent.page.$$eval("svg text", (all) => {
        const edge = document.querySelector("svg").getBoundingClientRect().right;
        return all.filter((t) => t.getBoundingClientRect().right > edge + 1).map((t) => t.textContent);
      });
      assert.deepEqual(out, []);
    }
    await sent.page.context().close();
  });

  test("plots in reports follow a dark page, photographs keep their colours", async () => {
    const dark = await open(site.browser, "", { colorScheme: "dark", viewport: { width: 1000, height: 700 } });
    await dark.page.goto(`file://${join(runs, "images-small", "report.html")}`);
    const filters = (selector) => dark.page.$$eval(selector, (all) => all.map((e) => getComputedStyle(e).filter));
    const plots = await filters("figure:not(.photographs) svg");
    const photographs = await filters("figure.photographs svg");
    assert.ok(plots.length >= 2 && plots.every((f) => f.startsWith("invert(1)")), plots.join());
    assert.ok(photographs.length >= 1 && photographs.every((f) => f === "none"), photographs.join());
    const shot = await (await dark.page.$("figure:not(.photographs) svg")).screenshot();
    const ground = await dark.page.$eval("body", (e) => getComputedStyle(e).backgroundColor.match(/\d+/g).map(Number));
    await dark.page.goto("about:blank"); // the report's own policy would refuse the fetch
    const corner = await dark.page.evaluate(async (png) => {
      const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
      const c = new OffscreenCanvas(image.width, image.height).getContext("2d");
      c.drawImage(image, 0, 0);
      return Array.from(c.getImageData(2, 2, 1, 1).data.slice(0, 3));
    }, shot.toString("base64"));
    assert.ok(Math.max(...ground) < 60, `the page is dark: ${ground}`);
    assert.deepEqual(corner, ground, "a plot has the page's own ground");
    await dark.page.context().close();
    const light = await open(site.browser, "", { colorScheme: "light" });
    await light.page.goto(`file://${join(runs, "images-small", "report.html")}`);
    assert.equal(await light.page.$eval("figure svg", (e) => getComputedStyle(e).filter), "none");
    await light.page.context().close();
  });

  test("formulas in the lab's prose are set as formulas", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: hashOf("lab", { e: "copy" }) });
    await ready(page, ".lab .picture");
    assert.equal(await page.textContent(".claim sub"), "j");
    assert.ok((await page.$$(".claim .variable")).length > 1);
    await page.selectOption("#experiment", "average"); // k_a is a variable as k_b is, and no article
    await page.waitForFunction(() => document.querySelector(".claim sub")?.textContent === "a");
    assert.ok(await page.$$eval(".claim sub", (all) => all.every((s) => s.querySelector(".variable"))));
    const names = await page.$$eval("#experiment option", (all) => all.map((o) => o.value));
    for (const name of names.filter((n) => n !== "cost" && n !== "block")) {
      await page.selectOption("#experiment", name);
      await page.waitForFunction((n) => document.querySelector("#experiment")?.value === n, name);
      await ready(page, ".lab .picture");
      const raw = await page.$eval(
        ".lab",
        (lab) => lab.innerText.match(/\S*[A-Za-zα-ω][_^][A-Za-zα-ω0-9({]\S*/g) ?? [],
      );
      // Words of programs keep their underscores.
      assert.deepEqual(
        raw.filter((w) => !/masked_softmax/.test(w)),
        [],
        name,
      );
    }
    await close();
  });

  test("rows from a stopwatch are shown and not judged", async () => {
    const hash = hashOf("lab", { e: "cost", p: "length=64&widest=16" });
    const { page, close } = await open(site.browser, site.url, { hash });
    await ready(page, ".lab .picture");
    const text = await page.textContent(".lab .picture");
    assert.match(text, /12 of 12 predictions agree.*; exact ones differ by 0 at most\. 5 more come from a stopwatch\./);
    const marks = await page.$$eval(".lab-table tbody td:last-child", (all) => all.map((td) => td.textContent.trim()));
    assert.equal(marks.filter((m) => m === "✓ exact").length, 12);
    assert.equal(marks.filter((m) => m === "stopwatch").length, 5);
    await close();
  });

  test("on a touch screen nothing speaks of arrow keys, of clicks or of the left", async () => {
    const { page, close } = await open(site.browser, site.url, {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    });
    for (const hash of [
      explore({ x: "abcd", tab: "map" }),
      explore({ x: "abcd", tab: "lines" }),
      explore({ x: "abcd", tab: "cell", q: 1 }),
      explore({ x: "abcd", tab: "steps" }),
      hashOf("explore", { m: "images-small" }),
      hashOf("train", { runs: "reverse-small,odd" }),
      hashOf("train", { runs: "-" }),
      hashOf("lab", { e: "block" }),
    ]) {
      await page.goto("about:blank");
      await page.goto(site.url + hash);
      await page.waitForSelector("[data-ready='true'], .train .empty");
      const said = await page.$eval("#app", (a) => {
        const labels = Array.from(a.querySelectorAll("[aria-label]"), (e) => e.getAttribute("aria-label"));
        return `${a.innerText} ${labels.join(" ")}`;
      });
      assert.doesNotMatch(said, /arrow|click|choose a run on the left/i, hash);
      if (/train/.test(hash)) {
        const hidden = await page.$$eval("table", (all) => all.map((t) => t.offsetWidth - t.parentElement.clientWidth));
        assert.ok(Math.max(0, ...hidden) === 0, "the table of figures fits");
      }
      await page.click("[aria-label='Help']");
      assert.doesNotMatch(await page.textContent(".help"), /arrow|Tab key/);
    }
    await close();
  });

  test("words: what people say", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: explore({ x: "abcdabcd", q: 1 }) });
    await ready(page, ".map-box");
    assert.equal(await page.textContent("button[type='submit']"), "Run");
    await page.waitForFunction(() =>
      /best \(step \d+\)/.test(document.querySelector("#checkpoint option")?.textContent),
    );
    await page.waitForSelector(".inspector .caption");
    assert.match(await page.textContent(".inspector"), /\d+% of an even spread/);
    assert.match(await page.textContent("#scale"), /relative to uniform/);
    await page.click("text=Steps");
    await ready(page, ".steps");
    assert.match(await page.textContent(".steps"), /Alternatives for this token/);
    await page.goto(site.url + hashOf("train", { runs: "translate-small" }));
    await page.waitForSelector("#metric");
    const metrics = await page.$$eval("#metric option", (all) => all.map((o) => o.textContent));
    assert.ok(metrics.includes("BLEU (validation)"), metrics.join());
    await page.selectOption("#metric", { label: "BLEU (validation)" });
    await page.waitForFunction(() =>
      /translate-small \d+\.\d\d at step/.test(document.querySelector(".train").innerText),
    );
    await close();
  });

  test("the page stays light", () => {
    const page = join(process.env.QKV_PROGRAM, "..", "page");
    const bytes = ["app.js", "app.css", "index.html"].reduce((a, f) => a + statSync(join(page, f)).size, 0);
    assert.ok(bytes < 500_000, `${bytes} bytes`);
  });

  test("the block of a tiny Transformer: the numbers of qkv explain block", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: hashOf("lab", { e: "block" }) });
    await page.waitForSelector(".block");
    for (const [norm, causal, words] of [
      ["post", false, []],
      ["pre", true, ["--norm", "pre", "--causal"]],
    ]) {
      await page.selectOption("#set-norm", norm);
      if ((await page.isChecked("#set-causal")) !== causal) await page.click("#set-causal");
      const want = JSON.parse(qkv("explain", "block", "--json", ...words)).steps;
      await page.waitForFunction((n) => document.querySelectorAll(".block .timeline .token").length === n, want.length);
      const csv = parseCsv(String((await saved(page, "csv")).bytes)).lines.slice(1);
      let line = 0;
      want.forEach((s, k) =>
        s.values.flat().forEach((v) => {
          const got = csv[line++];
          assert.equal(got[0], String(k + 1));
          if (v === null) assert.equal(got.at(-1), "-inf");
          else near(Number(got.at(-1)), v, 1e-12, s.name);
        }),
      );
      assert.equal(line, csv.length);
    }
    await page.focus(".block");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(".block[data-step='2']");
    await page.click(".block .timeline .token >> nth=13"); // Q = N_1 W_Q
    await page.waitForFunction(() => document.querySelectorAll(".block > .block-step .matrix").length === 3);
    assert.match(await page.textContent(".block > .block-step h3"), /14\. Q = /);
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await page.waitForSelector(".block[data-step='14']");
    await close();
  });
}
