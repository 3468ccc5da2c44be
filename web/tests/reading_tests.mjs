// What the page says is what there is: captions, labels, colours and axes that mislead nobody.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { hashOf, open, ready, saved } from "./harness.mjs";

const german = "der alte Mann sieht zwei Kinder";

/** Answers the requests whose address matches with what `change` makes of the server's answer. */
const altered = (page, address, change) =>
  page.route(address, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: change(await response.json()) });
  });

export function readingTests(site) {
  test("the lab compares no differences of unlike quantities: sampled ones count in standard errors", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: hashOf("lab", { e: "two-heads" }) });
    await ready(page, ".lab .picture");
    assert.match(
      await page.textContent("#agreement"),
      /^(\d+) of \1 predictions agree with the measurement; exact ones differ by [\d.e-]+ at most, sampled ones by [0-3]\.\d standard errors at most\.$/,
    );
    await page.selectOption("#experiment", "copy");
    await page.waitForFunction(() => /^15 of 15/.test(document.querySelector("#agreement")?.textContent));
    assert.doesNotMatch(await page.textContent("#agreement"), /sampled/);
    await close();
  });

  test("heads that look alike are not ranked", async () => {
    const { page, close } = await open(site.browser, site.url);
    await altered(page, /\/figures\?/, (figures) => ({ ...figures, entropy: [[0.891, 0.889]] }));
    await page.goto(site.url + hashOf("explore", { m: "reverse-small", x: "abcd", tab: "heads" }));
    await page.waitForSelector(".heads .caption");
    assert.match(await page.textContent(".heads .caption"), /^All heads look about as widely: entropy 89% of/);
    await close();
  });

  test("an output of nothing says so", async () => {
    const { page, close } = await open(site.browser, site.url);
    await altered(page, /\/api\/trace$/, (trace) => ({ ...trace, output: "" }));
    await page.goto(site.url + hashOf("explore", { m: "reverse-small", x: "abcd", tab: "map" }));
    await ready(page, ".map-box");
    assert.equal(await page.textContent("#output"), "(empty)");
    await close();
  });

  test("a curve of one value has axes that can be read", async () => {
    const { page, close } = await open(site.browser, site.url);
    await altered(page, /\/metrics\?/, (answer) => ({
      ...answer,
      records: answer.records.length ? [{ step: 2, epoch: 1, validation: { loss: 3.957917 } }] : [],
    }));
    await page.goto(site.url + hashOf("train", { runs: "none" }));
    await page.waitForSelector(".chart[data-ready='true']");
    const ticks = await page.$$eval(".chart [aria-label$='tick label'] text", (all) => all.map((t) => t.textContent));
    assert.ok(ticks.length >= 6, ticks.join());
    assert.ok(
      ticks.every((t) => t.length <= 4),
      ticks.join(),
    );
    await close();
  });

  test("only chosen runs have a colour, so that no two of the first eight share one", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: hashOf("train", { runs: "none,odd" }) });
    await page.waitForSelector(".run .swatch");
    const colours = () =>
      page.$$eval(".run", (all) =>
        Object.fromEntries(all.map((r) => [r.dataset.run, r.querySelector(".swatch").style.background])),
      );
    const before = await colours();
    assert.equal(before["reverse-small"], "transparent");
    await page.click(".run[data-run='reverse-small'] input");
    await page.waitForFunction(
      () => document.querySelector(".run[data-run='reverse-small'] .swatch").style.background !== "transparent",
    );
    const after = await colours();
    assert.equal(new Set([after.none, after.odd, after["reverse-small"]]).size, 3);
    assert.deepEqual([after.none, after.odd], [before.none, before.odd]);
    await close();
  });

  test("a saved map says what its colours stand for, and one of other numbers than weights speaks of none", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "reverse-small", x: "abcdabcd", tab: "map" }),
    });
    await ready(page, ".map-box");
    const plain = (bytes) =>
      String(bytes)
        .replaceAll(/<[^>]*>/g, " ")
        .replaceAll(/\s+/g, " ");
    const words = async () => plain((await saved(page, "svg")).bytes);
    assert.match(await words(), /A row's largest weight is .*Colours go from 0 to 0\.\d+, the largest weight\./);
    await page.goto(site.url + hashOf("lab", { e: "block" }));
    await page.waitForSelector(".block");
    const matrix = await words();
    assert.match(matrix, /given: the vocabulary is attention/);
    assert.doesNotMatch(matrix, /weight/);
    const numbers = await page.evaluate(
      (svg) => {
        const c = new OffscreenCanvas(1, 1).getContext("2d");
        const all = new DOMParser().parseFromString(svg, "image/svg+xml").querySelectorAll("text[font-size]");
        return Array.from(all, (t) => {
          c.font = `${t.getAttribute("font-size")}px "DejaVu Sans Mono"`;
          return c.measureText(t.textContent).width;
        });
      },
      String((await saved(page, "svg")).bytes),
    );
    assert.ok(numbers.length > 10 && Math.max(...numbers) < 24, "numbers stay in their cells");
    await page.goto(site.url + hashOf("train", { runs: "reverse-small", k: "240" }));
    await page.waitForSelector(".scrubber[data-ready='true']");
    await page.check(".scrubber input[type='checkbox']");
    await page.waitForFunction(() => /difference/.test(document.querySelector(".scrubber .map-box")?.ariaLabel));
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(".scrubber .save button")]);
    const difference = plain(readFileSync(await file.path()));
    assert.match(difference, /difference from the last.*Colours go from −[\d.]+ to \+/);
    assert.doesNotMatch(difference, /weight/);
    await close();
  });

  test("an experiment is saved with all its pictures, and their names keep their subscripts", async () => {
    const { page, close } = await open(site.browser, site.url, { hash: hashOf("lab", { e: "masks" }) });
    await ready(page, ".lab .picture");
    const maps = (await page.$$(".small-map")).length;
    assert.ok(maps > 3);
    assert.equal(String((await saved(page, "svg")).bytes).split("<image").length - 1, maps);
    await page.selectOption("#experiment", "two-heads");
    await page.waitForFunction(() => /^Two heads/.test(document.querySelector(".claim")?.textContent));
    await ready(page, ".lab .picture");
    assert.match(String((await saved(page, "svg")).bytes), /the weight of v<tspan[^>]*>a<\/tspan>/);
    await close();
  });

  test("on a phone the menus above a map are wide enough for what they say", async () => {
    const { page, close } = await open(site.browser, site.url, {
      viewport: { width: 390, height: 844 },
      hash: hashOf("explore", { m: "translate-small", x: german, s: "encoder", tab: "map", what: "rollout", l: 1 }),
    });
    await ready(page, ".map-box");
    const tight = await page.$$eval(".controls select", (all) =>
      all.flatMap((s) => {
        const c = new OffscreenCanvas(1, 1).getContext("2d");
        c.font = getComputedStyle(s).font;
        const text = s.selectedOptions[0].textContent;
        return c.measureText(text).width + 30 > s.clientWidth ? [`${text}: ${s.clientWidth}`] : [];
      }),
    );
    assert.deepEqual(tight, []);
    await close();
  });
}
