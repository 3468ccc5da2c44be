// Every kind of model: layers and heads, unequal lengths, causal masks, pictures.
import assert from "node:assert/strict";
import test from "node:test";
import { hashOf, mapOfProgram, near, open, parseCsv, ready, saved } from "./harness.mjs";

const german = "der alte Mann sieht zwei Kinder";

/** What the page saves as CSV equals what `qkv map` writes, masked cells too. */
async function sameAsProgram(page, run, input, ...words) {
  const want = mapOfProgram(run, input, ...words);
  const got = parseCsv(String((await saved(page, "csv")).bytes));
  assert.deepEqual(got.columns, want.columns);
  assert.deepEqual(got.rows, want.rows);
  got.values.forEach((row, i) =>
    row.forEach((v, j) => near(v, want.values[i][j], 1e-6, `${words.join(" ")} cell ${i},${j}`)),
  );
  return want;
}

export function modelTests(site) {
  test("Transformer: every site, layer and head; unequal lengths keep their axes; no later token is seen", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "translate-small", x: german, tab: "map" }),
    });
    await ready(page, ".map-box");
    const sites = await page.$$eval("#site option", (all) => all.map((o) => o.value));
    assert.deepEqual([...sites].sort(), ["alignment", "cross", "decoder", "encoder"]);
    const size = () => page.$eval(".map-box", (b) => [Number(b.dataset.rows), Number(b.dataset.cols)]);
    for (const [name, layer, head] of [
      ["cross", 1, 0],
      ["cross", 0, 1],
      ["encoder", 1, 1],
      ["decoder", 1, 0],
    ]) {
      await page.goto(
        site.url + hashOf("explore", { m: "translate-small", x: german, tab: "map", s: name, l: layer, h: head }),
      );
      await page.waitForFunction(
        (t) => document.querySelector(".map-box")?.getAttribute("aria-label").endsWith(t),
        `layer ${layer}, head ${head}`,
      );
      await page.waitForFunction((n) => document.querySelector("#site")?.value === n, name);
      await ready(page, ".map-box");
      await page.waitForSelector("#save-csv:not([disabled])", { state: "attached" });
      const want = await sameAsProgram(
        page,
        "translate-small",
        german,
        "--site",
        name,
        "--layer",
        String(layer),
        "--head",
        String(head),
      );
      assert.deepEqual(await size(), [want.rows.length, want.columns.length]);
      if (name === "cross") assert.notEqual(want.rows.length, want.columns.length, "the test wants unequal lengths");
      if (name === "decoder") {
        want.values.forEach((row, i) =>
          row.forEach((v, j) => assert.equal(Number.isNaN(v), j > i, `masked ${i},${j}`)),
        );
        await page.focus(".map-box");
        await page.keyboard.press("Home");
        await page.keyboard.press("End");
        await page.waitForFunction(() => /masked/.test(document.querySelector(".readout")?.textContent));
      }
    }
    await page.goto(site.url + hashOf("explore", { m: "translate-small", x: german, tab: "heads", s: "cross" }));
    await page.waitForSelector(".thumbs.large button.thumb >> nth=3");
    assert.equal((await page.$$(".thumbs.large button.thumb")).length, 4);
    await close();
  });

  test("a language model: causal rows, and what it predicts after each token", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "text-small", x: "the", tab: "map", l: 1 }),
    });
    await ready(page, ".map-box");
    const want = await sameAsProgram(page, "text-small", "the", "--layer", "1", "--head", "0");
    assert.ok(want.values[0].slice(1).every(Number.isNaN), "the first token sees itself alone");
    await page.click("text=Steps");
    await ready(page, ".steps");
    await page.goto(`${page.url()}&q=2`);
    await page.waitForFunction(() => document.querySelector(".steps .caption")?.textContent.startsWith("Step 2"));
    const p = await page.$$eval(".step-tables section:nth-child(2) td.n", (all) =>
      all.map((c) => Number(c.textContent)),
    );
    near(
      p.reduce((a, b) => a + b, 0),
      1,
      2e-3,
      "probabilities",
    );
    assert.equal(await page.textContent(".step-tables section:nth-child(2) h3"), "Alternatives for the next token");
    await close();
  });

  test("pictures: the class token's weights over the patches, one patch's, and the rollout", async () => {
    const { page, close } = await open(site.browser, site.url, {
      hash: hashOf("explore", { m: "images-small", x: "val:3", l: 1, h: 1 }),
    });
    await ready(page, ".picture-view");
    const weights = async () => {
      const { lines } = parseCsv(String((await saved(page, "csv")).bytes));
      assert.deepEqual(lines[0], ["token", "row", "column", "weight"]);
      return lines.slice(1).map((l) => ({ row: l[1], column: l[2], weight: Number(l[3]) }));
    };
    const want = mapOfProgram("images-small", "val:3", "--layer", "1", "--head", "1");
    const got = await weights();
    assert.equal(got[0].row, "class");
    near(
      got.reduce((a, t) => a + t.weight, 0),
      1,
      1e-5,
      "weights of the class token",
    );
    for (const t of got.slice(1))
      near(t.weight, want.values[Number(t.row)][Number(t.column)], 1e-6, `patch ${t.row},${t.column}`);
    // The brightest patch of the drawing is the one with the most weight.
    const top = got.slice(1).reduce((a, b) => (b.weight > a.weight ? b : a));
    assert.ok(
      (await page.textContent(".picture-view .caption")).includes(
        `row ${top.row}, column ${top.column}, has ${top.weight.toFixed(4)}`,
      ),
    );
    const canvas = await page.$(".picture-view canvas[tabindex='0']");
    const box = await canvas.boundingBox();
    await page.mouse.click(box.x + (2.5 / 7) * box.width, box.y + (1.5 / 7) * box.height); // patch in row 1, column 2
    await page.waitForFunction(() => location.hash.includes("q=10"));
    await page.waitForFunction(() =>
      document.querySelector(".picture-view .caption")?.textContent.includes("of patch 9"),
    );
    near(
      (await weights()).reduce((a, t) => a + t.weight, 0),
      1,
      1e-5,
      "weights of a patch",
    );
    await canvas.press("ArrowRight");
    await page.waitForFunction(() => location.hash.includes("q=11"));
    await page.click("text=Ask the class token");
    await page.click("text=rollout through the layers");
    await page.waitForFunction(
      () =>
        location.hash.includes("what=rollout") &&
        /A rollout/.test(document.querySelector(".picture-view .caption")?.textContent),
    );
    await page.waitForFunction(
      (c) => document.querySelector(".picture-view .caption")?.textContent.indexOf(c) < 0,
      top.weight.toFixed(4),
    );
    const roll = await weights();
    near(
      roll.reduce((a, t) => a + t.weight, 0),
      1,
      1e-5,
      "a row of the rollout",
    );
    assert.ok(Number(await page.textContent(".own .n")) === Number(roll[0].weight.toFixed(4)));
    const png = (await saved(page, "png")).bytes;
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    // A drawing is looked at too.
    await page.click("text=Run the drawing");
    await page.waitForFunction(() => document.querySelector("#input")?.value.startsWith("(a drawn"));
    await ready(page, ".picture-view");
    assert.ok((await page.textContent("#output")).length > 0);
    await close();
  });
}
