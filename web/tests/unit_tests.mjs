// Pieces of the page that need no browser.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { folder, near } from "./harness.mjs";

async function load(name) {
  const outfile = join(folder, `${name.replace("/", "-")}.mjs`);
  await build({
    entryPoints: [new URL(`../src/${name}.ts`, import.meta.url).pathname],
    bundle: true,
    format: "esm",
    outfile,
    logLevel: "error",
  });
  const module = await import(pathToFileURL(outfile));
  rmSync(outfile);
  return module;
}

export function unitTests() {
  test("smoothing: later points never change earlier ones; not-a-number touches nothing", async () => {
    const { smooth, thin, points, best } = await load("train/curves");
    const values = Array.from({ length: 50 }, (_, i) => ({ x: i, step: i, value: Math.sin(i) + 2 }));
    const whole = smooth(values, 5);
    assert.deepEqual(smooth(values.slice(0, 20), 5), whole.slice(0, 20));
    near(whole[0].value, values[0].value, 1e-12, "the first value");
    const broken = values.map((p, i) => (i === 7 ? { ...p, value: NaN } : p));
    assert.ok(Number.isFinite(smooth(broken, 5)[8].value));
    const thinned = thin(
      Array.from({ length: 10000 }, (_, i) => ({ x: i, step: i, value: i === 5000 ? 9 : 0 })),
      100,
    );
    assert.ok(thinned.length <= 201 && thinned.some((p) => p.value === 9), "a peak survives");
    const records = [
      { step: 1, loss: 2 },
      { step: 2, epoch: 1, validation: { loss: null } },
    ];
    assert.equal(points(records, "loss").length, 1);
    assert.ok(Number.isNaN(points(records, "validation loss")[0].value));
    assert.equal(best(values, "loss").value, Math.min(...values.map((p) => p.value)));
  });

  test("maps: scales, pooling, captions, CSV", async () => {
    const { shades, poolMatrix, describeCell, rowMaximum, topWeight } = await load("map/matrix");
    const { matrixCsv, shortest } = await load("save/csv");
    const m = {
      rows: 2,
      cols: 3,
      values: Float32Array.of(0.5, 0.5, NaN, 0.25, 0, 0.75),
      rowLabels: ["a,b", "c"],
      colLabels: ["x", "y", "z"],
    };
    near(topWeight(m), 0.75, 1e-9, "all rows count while they see similarly many keys");
    const causal = { rows: 3, cols: 3, values: Float32Array.of(1, NaN, NaN, 0.5, 0.5, NaN, 0.25, 0.25, 0.5) };
    near(topWeight(causal), 0.5, 1e-9, "a row that sees one key of three does not");
    assert.deepEqual(
      Array.from(shades(m, "row")).map((v) => (Number.isNaN(v) ? "masked" : +v.toFixed(4))),
      [1, 1, "masked", 0.3333, 0, 1],
    );
    near(shades(m, "lift")[0], 0.5, 1e-6, "half of two keys is even");
    assert.equal(poolMatrix(m, 2).values[0], 0.5);
    assert.equal(rowMaximum(m, 0), 0);
    assert.equal(rowMaximum(m, 1), 2);
    assert.match(describeCell(m, 0, 2), /masked/);
    assert.match(describeCell(m, 1, 2), /0\.7500, rank 1 of 3, 2\.25 × uniform/);
    assert.equal(matrixCsv(m), ',x,y,z\n"a,b",0.5,0.5,masked\nc,0.25,0,0.75\n');
    for (const v of [0.1, 1 / 3, 1e-20, 0.999999])
      assert.equal(Math.fround(Number(shortest(Math.fround(v)))), Math.fround(v));
  });

  test("labels of a map: a rare long one is cut and turns no other, and none stands too close to the next", async () => {
    globalThis.matchMedia ??= () => ({ matches: false, addEventListener: () => {} });
    globalThis.localStorage ??= { getItem: () => null };
    const { axisLabel, mapLayout, columnStep, columnLabel, positionStep, rowStep } = await load("map/heatmap_draw");
    const mapOf = (labels) => ({
      rows: labels.length,
      cols: labels.length,
      values: new Float32Array(labels.length ** 2),
      rowLabels: labels,
      colLabels: labels,
    });
    const letters = Array.from("the quick brown dog sees a red house near the river and then it runs to the ");
    const rare = mapOf(letters.map((c, i) => (i === 6 ? "<unk>" : c)));
    const upright = mapLayout(rare);
    assert.equal(upright.turned, false);
    assert.equal(upright.top, mapLayout(mapOf(letters)).top, "no empty space above");
    assert.equal(columnLabel(rare, upright, 6, 6), "…");
    assert.equal(columnLabel(rare, upright, 6, 24), "<…>");
    assert.equal(columnLabel(rare, upright, 6, 48), "<unk>", "large cells show all of it");
    const words = mapOf(letters.map((c, i) => (i % 4 ? c : `${c}word`)));
    const turned = mapLayout(words);
    assert.equal(turned.turned, true);
    assert.equal(mapLayout(mapOf(["a", "b", "</s>"])).turned, true, "one of three is not rare");
    for (const size of [1, 2.5, 4, 5.6, 8, 10, 11, 24]) {
      const apart = columnStep(turned, size);
      if (apart > 1) assert.ok(apart * size >= 20, `turned, with positions, at ${size}: every ${apart}`);
      assert.ok(columnStep(upright, size) * size >= 11);
      if (rowStep(size) > 1) assert.ok(rowStep(size) * size >= 14, `rows at ${size}`);
    }
    assert.equal(columnStep(turned, 12), 1, "up to 60 tokens every label is written");
    const numbers = mapOf(letters.map((_, i) => String(i)));
    assert.equal(axisLabel(words, words.rowLabels, 10, 2), `10 ${words.rowLabels[10]}`);
    assert.equal(axisLabel(numbers, numbers.rowLabels, 10, 2), "10", "a label that is the position stands alone");
    assert.equal(positionStep(numbers, 12), 0);
    const pairs = mapLayout(mapOf(letters.map((c) => c + c)));
    assert.ok(columnStep(pairs, 12) * 12 >= 17, "two letters need the room of two");
  });

  test("labels that are left out: the others stand below their positions; numbers are their own positions", async () => {
    globalThis.matchMedia ??= () => ({ matches: false, addEventListener: () => {} });
    globalThis.localStorage ??= { getItem: () => null };
    const { axisLabel, labelledColumns, mapLayout, positionStep } = await load("map/heatmap_draw");
    const mapOf = (labels) => ({
      rows: 250,
      cols: 250,
      values: new Float32Array(0),
      rowLabels: labels,
      colLabels: labels,
    });
    const text = mapOf(Array.from("abcdabdcbacd".repeat(21)).slice(0, 250));
    for (const size of [1.5, 2.5, 4, 8])
      assert.equal(labelledColumns(text, mapLayout(text), size), positionStep(text, size), String(size));
    assert.equal(labelledColumns(text, mapLayout(text), 12), 1);
    assert.equal(axisLabel(text, text.rowLabels, 20, 5), "20 b");
    const numbers = mapOf(Array.from({ length: 250 }, (_, i) => String(i)));
    assert.equal(axisLabel(numbers, numbers.rowLabels, 20, 5), "20");
    assert.equal(positionStep(numbers, 4), 0);
    assert.ok(mapLayout(numbers).left < mapLayout(text).left + 2 * 7.3);
  });

  test("the address: letters of old links name the same things, and come back as they were", async () => {
    Object.assign(globalThis, { location: { hash: "" }, addEventListener: () => {} });
    const { parseHash, toHash } = await load("state");
    const link =
      "#/explore?m=run&c=40&x=a%26b&f=3%2C4&s=cross&l=1&h=2&q=0&tab=lines&scale=lift&what=scores&off=1&share=80" +
      "&runs=a%2Cb&y=loss&axis=epoch&half=3&log=true&k=20&e=beta&p=n%3D3";
    const { state, wrong } = parseHash(link);
    assert.deepEqual(wrong, []);
    assert.deepEqual(
      [state.model, state.checkpoint, state.input, state.beginning, state.site, state.layer, state.head, state.query],
      ["run", "40", "a&b", "3,4", "cross", 1, 2, 0],
    );
    assert.deepEqual(
      [state.hiddenHeads, state.metric, state.halfLife, state.logarithmic, state.trainingStep],
      ["1", "loss", 3, true, 20],
    );
    assert.deepEqual([state.experiment, state.settings], ["beta", "n=3"]);
    assert.equal(toHash(state), link);
    assert.equal(toHash(parseHash("#/lab?e=beta").state), "#/lab?e=beta");
    const bad = parseHash("#/explore?l=x&tab=nothing&log=maybe&toString=1&q=2");
    assert.deepEqual(bad.wrong, ["layer", "tab", "logarithmic"]);
    assert.equal(bad.state.query, 2);
    assert.equal(toHash({ ...state, input: "a".repeat(2001) }).includes("x="), false);
  });
}
