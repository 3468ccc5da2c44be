// Train, lab, the empty page, a server that goes away, and every view at every size.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { folder, hashOf, mapOfProgram, near, open, parseCsv, ready, runs, saved, serve } from "./harness.mjs";

const records = (run) =>
  readFileSync(join(runs, run, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((l) => JSON.parse(l));

export function viewTests(site) {
  test("train: curves of two runs, and the numbers of metrics.jsonl", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("train", { runs: "reverse-small,odd", y: "validation loss" }),
    });
    await page.waitForSelector(".chart[data-ready='true'] svg");
    await page.waitForFunction(() => document.querySelectorAll(".chart svg [aria-label='line'] path").length >= 2);
    const csv = parseCsv(String((await saved(page, "csv")).bytes)).lines.slice(1);
    for (const run of ["reverse-small", "odd"]) {
      const want = records(run).filter((r) => r.kind === "evaluation");
      const got = csv.filter((l) => l[0] === run);
      assert.equal(got.length, want.length);
      want.forEach((r, i) => {
        assert.equal(Number(got[i][2]), r.step);
        near(Number(got[i][3]), r.validation.loss, 1e-12, "validation loss");
      });
    }
    const svg = String((await saved(page, "svg")).bytes);
    assert.match(svg, /<path/);
    for (const run of ["reverse-small", "odd"]) assert.match(svg, new RegExp(`fill="[^"]+"/><text[^>]*>[^<]*${run}<`));
    assert.match(await page.textContent(".train"), /broken/);
    await page.selectOption("#metric", { label: "tokens per second" });
    await page.waitForFunction(
      () =>
        document.querySelector(".train h2 + p, .picture h2")?.textContent.length > 0 &&
        location.hash.includes("tokens"),
    );
    await close();
  });

  test("train: the map of one example at every checkpoint", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("train", { runs: "reverse-small", m: "reverse-small", x: "abcdabcd" }),
    });
    await ready(page, ".scrubber");
    const steps = records("reverse-small")
      .filter((r) => r.kind === "evaluation")
      .map((r) => r.step);
    for (const step of [steps[0], steps[steps.length - 1]]) {
      await page.$eval(
        "#scrub",
        (s, at) => {
          s.value = at;
          s.dispatchEvent(new Event("input", { bubbles: true }));
        },
        steps.indexOf(step),
      );
      await page.waitForSelector(`.scrubber[data-step="${step}"]`);
      const want = mapOfProgram("reverse-small", "abcdabcd", "--head", "0", "--weights", String(step));
      await page.waitForSelector(`.scrubber .map-box[data-rows="${want.rows.length}"]`);
      await page.focus(".scrubber .map-box");
      await page.keyboard.press("Home");
      await page.waitForFunction(
        (t) => document.querySelector(".scrubber .readout")?.textContent.includes(t),
        `(0): ${want.values[0][0].toFixed(4)}`,
      );
    }
    await page.click("text=difference from the last");
    await page.waitForFunction(() => document.querySelector(".scrubber .readout")?.textContent.includes("0.0000"));
    await close();
  });

  test("train: of a comparison the example is of a run with attention; one without shows what it writes", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("train", { runs: "none,reverse-small" }),
    });
    await page.waitForSelector(".scrubber .map-box");
    assert.equal(await page.$eval(".which select", (s) => s.value), "reverse-small");
    await page.selectOption(".which select", "none");
    await page.waitForFunction(() =>
      /“[a-d]+” → “[a-d]*” at step \d+\. This model has no attention/.test(
        document.querySelector(".scrubber small")?.textContent,
      ),
    );
    assert.equal(await page.$(".scrubber .map-box"), null);
    assert.doesNotMatch(await page.textContent(".scrubber"), /difference/);
    await close();
  });

  test("train: a new training's settings begin with what most people change, without a command line's dashes", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: "#/train" });
    await page.click("#new-training");
    await page.waitForSelector("#new-attention");
    const names = await page.$$eval(".new-training form > .control > .name", (all) => all.map((s) => s.textContent));
    assert.deepEqual(names.slice(names.indexOf("attention"), names.indexOf("attention") + 2), ["attention", "epochs"]);
    assert.doesNotMatch(await page.textContent(".new-training"), /--[a-z]/);
    await close();
  });

  test("lab: every experiment draws; sliders change the answer", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: "#/lab" });
    await ready(page, ".lab .picture");
    const names = await page.$$eval("#experiment option", (all) => all.map((o) => o.value));
    assert.ok(names.length >= 16);
    for (const name of names) {
      await page.selectOption("#experiment", name);
      await page.waitForFunction(
        (n) => location.hash.includes(`e=${n}`) || document.querySelector("#experiment")?.value === n,
        name,
      );
      if (name === "block") {
        await page.waitForSelector(".block .matrix");
        continue;
      }
      await ready(page, ".lab .picture");
      await page.waitForSelector(".lab-figure svg, .small-map canvas");
      assert.equal(await page.$(".lab .error[role='alert']"), null, name);
    }
    await page.selectOption("#experiment", "copy");
    await ready(page, ".lab .picture");
    const before = await page.textContent(".lab-table");
    const slider = await page.$(".slider input[type='range']");
    await slider.focus();
    for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowRight");
    await page.waitForFunction(
      (t) =>
        document.querySelector(".lab .picture")?.dataset.ready === "true" &&
        document.querySelector(".lab-table")?.textContent !== t,
      before,
    );
    const csv = parseCsv(String((await saved(page, "csv")).bytes));
    assert.deepEqual(csv.lines[0].slice(0, 4), ["at", "quantity", "predicted", "measured"]);
    for (const l of csv.lines.slice(1)) assert.equal(l[6], "true");
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await ready(page, ".lab .picture");
    assert.notEqual(await page.textContent(".lab-table"), before);
    await close();
  });

  test("lab: a setting it refuses is answered with its sentence", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("lab", { e: "copy", p: "nonsense=1" }),
      expect: [/400/],
    });
    await page.waitForSelector(".lab .error[role='alert']");
    assert.match(await page.textContent(".lab .error"), /nonsense/);
    await close();
  });

  test("without any run: one button trains a small model, and its curve grows", async () => {
    mkdirSync(join(folder, "none"), { recursive: true });
    const server = await serve("none");
    const { page, close } = await open(site.browser, server.url);
    await page.click("#train-small");
    await page.waitForSelector(".train .run");
    await page.waitForSelector(".chart svg", { timeout: 60000 });
    await page.waitForFunction(() => !document.querySelector(".run em"), undefined, { timeout: 90000 });
    await page.click("#view-explore");
    await ready(page, ".map-box");
    await close();
    await server.stop();
  });

  test("a server that is read-only for this browser: nothing to start or stop", async () => {
    const { page, close } = await open(site.browser, "");
    await page.route("**/api/runs", async (route) => {
      const answer = await (await route.fetch()).json();
      for (const run of answer.runs) run.training = true;
      await route.fulfill({ json: { ...answer, read_only: true } });
    });
    await page.goto(`${site.url}#/train`);
    await page.waitForSelector(".train .run em");
    assert.match(await page.textContent(".train .panel"), /on the server's machine/);
    assert.equal(await page.$("text=Train a small"), null);
    assert.equal(await page.$(".run >> text=stop"), null);
    await page.unrouteAll({ behavior: "ignoreErrors" }); // the page asks again and again, also while it closes
    await close();
  });

  test("a server that goes away and comes back", async () => {
    const server = await serve(runs);
    const { page, close } = await open(site.browser, server.url, {
      hash: hashOf("explore", { m: "reverse-small", x: "abcabc" }),
      expect: [/ERR_CONNECTION|Failed to load/],
    });
    await ready(page, ".map-box");
    await server.kill();
    await page.waitForSelector("#gone");
    assert.equal(await page.$eval(".map-box", (b) => b.dataset.cols), "6");
    const again = await serve(runs, server.port);
    await page.waitForFunction(() => !document.querySelector("#gone"));
    await page.click(".thumb >> nth=1"); // a trace the new server has never seen
    const want = mapOfProgram("reverse-small", "abcabc", "--head", "1");
    await page.focus(".map-box");
    await page.keyboard.press("Home");
    await page.waitForFunction(
      (t) => document.querySelector(".readout")?.textContent.includes(t),
      `(0): ${want.values[0][0].toFixed(4)}`,
    );
    await close();
    await again.stop();
  });

  const looks = [
    ["explore", { tab: "map", q: 2 }],
    ["explore", { tab: "lines" }],
    ["explore", { tab: "heads" }],
    ["explore", { tab: "steps", q: 1 }],
    ["train", {}],
    ["lab", { e: "beta" }],
  ];
  for (const [width, height] of [
    [360, 740],
    [390, 844],
    [1280, 800],
    [3840, 2160],
  ]) {
    test(`${width} x ${height}: nothing overflows, everything has a name`, async () => {
      for (const colorScheme of width === 390 ? ["light", "dark"] : ["light"]) {
        const { page, close } = await open(site.browser, site.url, { viewport: { width, height }, colorScheme });
        for (const [view, state] of looks) {
          await page.goto(site.url + hashOf(view, { m: "reverse-small", x: "abcdabcd", ...state }));
          await page.waitForSelector("[data-ready='true']");
          const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(over <= 0, `${view} ${JSON.stringify(state)} is ${over} px too wide`);
          const nameless = await page.$$eval("button, input, select, textarea, canvas[tabindex='0']", (all) =>
            all
              .filter(
                (e) =>
                  !(
                    e.textContent.trim() ||
                    e.getAttribute("aria-label") ||
                    e.closest("label") ||
                    document.querySelector(`label[for='${e.id}']`)
                  ),
              )
              .map((e) => e.outerHTML),
          );
          assert.deepEqual(nameless, []);
          const dark = await page.evaluate(() => document.documentElement.dataset.theme);
          assert.equal(dark, colorScheme);
        }
        await close();
      }
    });
  }

  test("on a phone: type, pin by a tap, save", async () => {
    const { page, close } = await open(site.browser, site.url, {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
      hash: hashOf("explore", { m: "reverse-small", x: "abab" }),
    });
    await ready(page, ".map-box");
    await page.fill("#input", "dcba");
    await page.tap("button[type='submit']");
    await page.waitForFunction(
      () => document.querySelector("#output")?.textContent.length > 0 && location.hash.includes("dcba"),
    );
    await ready(page, ".map-box");
    await page.$eval(".map-box", (b) => b.scrollIntoView({ block: "center" }));
    const at = await page.$eval(".map-box", (b) => {
      const r = b.getBoundingClientRect();
      const s = Number(b.dataset.size);
      return { x: r.left + Number(b.dataset.left) + 1.5 * s, y: r.top + Number(b.dataset.top) + 2.5 * s };
    });
    await page.touchscreen.tap(at.x, at.y);
    await page.waitForFunction(() => location.hash.includes("q=2"));
    const csv = parseCsv(String((await saved(page, "csv")).bytes));
    assert.equal(csv.columns.join(""), "dcba");
    await close();
  });

  test("the broken run was named once, on standard error", () => {
    assert.match(site.errors(), /broken.*others are served/);
  });
}
