// Working with models: from q and k to the weight, writing with a language model, two runs side by side, training.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { folder, hashOf, mapOfProgram, near, open, parseCsv, ready, saved, serve } from "./harness.mjs";

const input = "abcdabcd";
const explore = (state) => hashOf("explore", { m: "reverse-small", x: input, ...state });
const tokens = (page) => page.$$eval(".timeline .token", (all) => all.map((t) => t.textContent));

/** An answer of the server to the page that is open. */
const ask = (page, path) => page.evaluate(async (p) => (await fetch(p)).json(), path);

export function workTests(site) {
  test("from q and k to the weight: every number between a cell of the map and its vectors", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: explore({ h: 1 }) });
    await ready(page, ".map-box");
    const p = await page.$eval(".map-box", (b) => {
      const r = b.getBoundingClientRect();
      const s = Number(b.dataset.size);
      return { x: r.left + Number(b.dataset.left) + 3.5 * s, y: r.top + Number(b.dataset.top) + 2.5 * s };
    });
    await page.mouse.click(p.x, p.y);
    await page.waitForFunction(() => location.hash.includes("q=2") && location.hash.includes("j=3"));
    await page.waitForSelector("#open-cell");
    const [answer] = await Promise.all([page.waitForResponse(/\/cell\?/), page.click("#open-cell")]);
    const c = await answer.json();
    await ready(page, ".cell-view");
    const weight = mapOfProgram("reverse-small", input, "--head", "1").values[2];
    const shown = await page.textContent(".ladder tr:last-child .n");
    const key = Number(new URL(answer.url()).searchParams.get("key"));
    assert.equal(shown, weight[key].toFixed(4));
    near(
      c.terms.reduce((a, v) => a + v, 0),
      c.product,
      1e-9,
      "the sum of the products",
    );
    c.terms.forEach((v, d) => near(v, c.query[d] * c.key[d], 1e-9, `dimension ${d}`));
    const csv = parseCsv(String((await saved(page, "csv")).bytes)).lines.slice(1);
    csv.forEach((l, d) => {
      if (d >= c.terms.length) return;
      near(Number(l[3]), c.terms[d], 1e-9, "term");
      near(Number(l[4]) * c.weight, Number(l[5]), 1e-9, "contribution");
    });
    // The keyboard reads every dimension, and another key is a click away.
    await page.focus(".cell-view");
    await page.keyboard.press("End");
    const last = c.terms.length - 1;
    await page.waitForFunction(
      (t) => document.querySelector(".cell-view .readout")?.textContent.includes(t),
      `Dimension ${last}`,
    );
    await page.click(".choose .tinted >> nth=1 >> button >> nth=0");
    await page.waitForFunction(() => location.hash.includes("j=0"));
    await page.waitForFunction(
      (t) => document.querySelector(".ladder tr:last-child .n")?.textContent === t,
      weight[0].toFixed(4),
    );
    await close();
  });

  test("from q and k to the weight: a masked key, and additive scores", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "text-small", x: "the", tab: "cell", q: 1, j: 3 }),
    });
    await ready(page, ".cell-view");
    assert.match(await page.textContent(".ladder"), /masked: this key is hidden/);
    assert.equal(await page.textContent(".ladder tr:last-child .n"), "0.0000");
    await close();
    const additive = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "odd", x: "b0b0", tab: "cell", q: 1 }),
    });
    await ready(additive.page, ".cell-view");
    const c = await ask(
      additive.page,
      await additive.page.evaluate(() =>
        performance
          .getEntriesByType("resource")
          .map((e) => e.name)
          .findLast((n) => n.includes("/cell?")),
      ),
    );
    assert.equal(c.score_weight.length, c.terms.length);
    c.terms.forEach((v, d) => near(v, c.score_weight[d] * Math.tanh(c.query[d] + c.key[d]), 1e-6, `dimension ${d}`));
    assert.match(await additive.page.textContent(".cell-view"), /tanh/);
    await additive.close();
  });

  test("a language model: temperature, top-k, top-p and seed; continue; force a token", async () => {
    const at = { m: "text-small", x: "the old", tab: "steps", q: 7 };
    const { page, close } = await open(site.browser, site.url, { hash: hashOf("explore", at) });
    await ready(page, ".steps");
    const output = () => page.textContent("#output");
    const changed = (before) =>
      page.waitForFunction((t) => document.querySelector("#output")?.textContent !== t, before);
    const greedy = await output();
    const set = (id, value) =>
      page.$eval(
        id,
        (e, v) => {
          e.value = v;
          e.dispatchEvent(new Event("change", { bubbles: true }));
        },
        value,
      );
    await set("#temperature", "1.5");
    await changed(greedy);
    const first = await output();
    await set("#seed", "2");
    await changed(first);
    const second = await output();
    await set("#seed", "1");
    await changed(second);
    assert.equal(await output(), first, "the same seed draws the same text");
    await set("#top-k", "1");
    await page.waitForFunction((t) => document.querySelector("#output")?.textContent === t, greedy);
    await set("#top-k", "0");
    await page.waitForFunction((t) => document.querySelector("#output")?.textContent === t, first);
    const link = page.url();
    assert.match(link, /temp=1\.5/);
    await page.click("#continue");
    await changed(first);
    assert.ok((await output()).startsWith(first), "it continues from there");
    await page.goto("about:blank");
    await page.goto(link);
    await page.waitForFunction((t) => document.querySelector("#output")?.textContent === t, first);
    // Step 7 has read the whole prompt: what comes next may be chosen.
    await set("#temperature", "0");
    await page.waitForFunction((t) => document.querySelector("#output")?.textContent === t, greedy);
    await ready(page, ".steps");
    const free = await tokens(page);
    const other = await page.textContent(".step-tables section:nth-child(2) tr:nth-child(3) th");
    await page.click(".step-tables section:nth-child(2) tr:nth-child(3) button");
    await page.waitForFunction((t) => document.querySelectorAll(".timeline .token")[8]?.textContent === t, other);
    assert.deepEqual((await tokens(page)).slice(0, 8), free.slice(0, 8));
    await page.click("text=Let it choose again");
    await page.waitForFunction((t) => document.querySelectorAll(".timeline .token")[8]?.textContent === t, free[8]);
    await page.goto(site.url + hashOf("explore", { ...at, q: 2 }));
    await page.waitForFunction(() => document.querySelector(".steps .caption")?.textContent.startsWith("Step 2"));
    assert.equal(await page.$(".step-tables section:nth-child(2) button"), null, "the input is not the model's");
    await close();
  });

  test("two runs side by side: one without attention shows its output and probabilities", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: explore({}) });
    await ready(page, ".map-box");
    await page.selectOption("#other", "none");
    await page.waitForSelector(".pane[data-run='none'] .steps[data-ready='true']");
    await ready(page, ".pane[data-run='reverse-small'] .map-box");
    const answer = await page.evaluate(
      async (x) =>
        (
          await fetch("/api/trace", {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify({ model: "none", input: x }),
          })
        ).json(),
      input,
    );
    const pane = await page.textContent(".pane[data-run='none']");
    assert.ok(pane.includes(answer.output));
    assert.ok(pane.includes(answer.candidates[0][0].p.toFixed(4)), pane);
    assert.match(pane, /no attention/);
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await page.waitForSelector(".pane[data-run='none'] .steps[data-ready='true']");
    await page.fill("#input", "dcba");
    await page.press("#input", "Enter");
    await page.waitForFunction(() => document.querySelectorAll(".pane[data-run='none'] .timeline .token").length >= 1);
    await page.click("text=Show one run");
    await page.waitForFunction(() => !document.querySelector(".pane"));
    // Alone it shows the same.
    await page.goto(site.url + hashOf("explore", { m: "none", x: input }));
    await ready(page, ".steps");
    assert.ok((await page.textContent(".picture")).includes(answer.candidates[0][0].p.toFixed(4)));
    assert.doesNotMatch(await page.textContent(".picture"), /nothing to look at/);
    await close();
  });

  test("a phone shows the top of a language model's map on the first screen; how it writes is one touch away", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "text-small", x: "the quick brown dog sees a red house near the" }),
      viewport: { width: 390, height: 844 },
      isMobile: true,
      hasTouch: true,
    });
    await ready(page, ".map-box");
    await page.waitForSelector(".examples .chip");
    const [cells, bar] = await page.evaluate(() => {
      const box = document.querySelector(".map-box");
      const top = (e) => e.getBoundingClientRect().top;
      return [top(box) + Number(box.dataset.top), top(document.querySelector("nav"))];
    });
    assert.ok(cells + 60 < bar, `cells begin at ${cells}, the bar below at ${bar}`);
    assert.equal(await page.isVisible("#temperature"), false);
    await page.tap(".writing summary");
    assert.equal(await page.isVisible("#temperature"), true);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.reload();
    await ready(page, ".map-box");
    assert.equal(await page.isVisible("#temperature"), true, "a desk has room for it");
    await close();
  });

  test("two runs side by side have one scale of colours, up to the larger of their largest weights", async () => {
    const x = "bbbbbb";
    const largest = (m) => {
      const { values } = mapOfProgram(m, x, "--head", "0");
      return values.flatMap((row, i) => row.map((v, j) => ({ m, i, j, v }))).reduce((a, c) => (c.v > a.v ? c : a));
    };
    const [weak, strong] = ["reverse-small", "odd"].map(largest).sort((a, c) => a.v - c.v);
    assert.ok(strong.v - weak.v > 0.05, `${weak.v} and ${strong.v}: each alone would have another scale`);
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: weak.m, m2: strong.m, x }),
    });
    const ends = `${Number(strong.v.toPrecision(3))}, the largest weight of both runs`;
    const shade = async ({ m, i, j }) => {
      const box = `.pane[data-run='${m}'] .map-box`;
      await ready(page, box);
      await page.waitForFunction(
        ([b, t]) => document.querySelector(b)?.closest(".pane").querySelector(".colorbar")?.textContent.includes(t),
        [box, ends],
      );
      return page.$eval(
        box,
        (b, [i, j]) => {
          const [left, top, size] = ["left", "top", "size"].map((k) => Number(b.dataset[k]));
          const c = b.querySelector("canvas").getContext("2d");
          return c.getImageData(left + j * size + 3, top + i * size + 3, 1, 1).data[0];
        },
        [i, j],
      );
    };
    const [light, dark] = [await shade(weak), await shade(strong)];
    assert.ok(light > dark, `the weaker run's largest weight is lighter than the other's: ${light}, ${dark}`);
    await page.click("text=Show one run");
    await page.waitForFunction(() => !document.querySelector(".pane"));
    await ready(page, ".map-box");
    assert.doesNotMatch(await page.textContent(".colorbar"), /both runs/);
    await close();
  });

  test("any task can be trained from the page with its settings, and the new run has the focus", async () => {
    mkdirSync(join(folder, "own"), { recursive: true });
    const server = await serve("own");
    const { page, close } = await open(site.browser, server.url, { expect: [/400/] });
    await page.click("#new-training");
    await page.waitForSelector("#new-task");
    const tasks = await page.$$eval("#new-task option", (all) => all.map((o) => o.value));
    for (const task of ["reverse", "translate", "text", "images", "knowledge"]) assert.ok(tasks.includes(task), task);
    const begin = async (task, settings) => {
      await page.selectOption("#new-task", task);
      await page.click(".new-training details summary");
      for (const [name, value] of Object.entries(settings)) await page.fill(`#new-${name}`, String(value));
      await page.click("#start-training");
    };
    await begin("text", { layers: 1, heads: 2, width: 16, block: 16, "generated-size": 100, steps: 4, warmup: 1 });
    await page.waitForSelector(".run[data-run='text'] input:focus");
    assert.match(page.url(), /runs=text/);
    await page.waitForSelector(".chart svg", { timeout: 60000 });
    await page.click("#new-training");
    await begin("reverse", { hidden: 16, "train-size": 300, "validation-size": 20, epochs: 1 });
    await page.waitForSelector(".run[data-run='reverse'] input:focus");
    await page.waitForFunction(
      () => /task reverse/.test(document.querySelector(".train h2 small")?.textContent),
      undefined,
      {
        timeout: 60000,
      },
    );
    // Losses of different tasks do not share an axis.
    await page.check(".run[data-run='text'] input");
    await page.waitForFunction(() => document.querySelectorAll(".train .chart svg").length === 2);
    assert.deepEqual(
      (await page.$$eval(".train h2 small", (all) => all.map((s) => s.textContent))).slice(0, 2).sort(),
      ["task reverse, reverse", "task text, text"],
    );
    // A setting it refuses is answered with its sentence.
    await page.click("#new-training");
    await page.selectOption("#new-task", "reverse");
    await page.$eval(".new-training form", (f) => {
      f.noValidate = true;
    });
    await page.fill("#new-epochs", "-3");
    await page.click("#start-training");
    await page.waitForSelector(".new-training .error");
    assert.match(await page.textContent(".new-training .error"), /epochs/);
    await close();
    await server.stop();
  });

  test("a comparison stands together and opens as one", async () => {
    const { page, close } = await open(site.browser, "");
    await page.route("**/api/runs", async (route) => {
      const answer = await (await route.fetch()).json();
      for (const run of answer.runs) if (["reverse-small", "none"].includes(run.id)) run.group = "compare-reverse";
      await route.fulfill({ json: answer });
    });
    await page.goto(`${site.url}#/train?runs=odd`);
    await page.waitForSelector(".group");
    assert.match(await page.textContent(".group h3"), /compare-reverse/);
    assert.equal((await page.$$(".group .run")).length, 2);
    await page.click(".group h3 button");
    await page.waitForFunction(() =>
      /2 runs of compare-reverse in one plot/.test(document.querySelector(".train h2 small")?.textContent),
    );
    assert.equal((await page.$$(".figures-table tbody tr")).length, 2);
    await page.click("#view-explore");
    await page.waitForSelector("#run optgroup[label='compare-reverse'] option", { state: "attached" });
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await close();
  });
}
