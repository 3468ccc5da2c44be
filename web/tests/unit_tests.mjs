// Pieces of the page that need no browser.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { folder, near } from "./harness.mjs";

async function load(name) {
  const outfile = join(folder, `${name}.mjs`);
  await build({ entryPoints: [new URL(`../src/${name}.ts`, import.meta.url).pathname], bundle: true, format: "esm", outfile, logLevel: "error" });
  const module = await import(pathToFileURL(outfile));
  rmSync(outfile);
  return module;
}

export function unitTests() {
  test("smoothing: later points never change earlier ones; not-a-number touches nothing", async () => {
    const { smooth, thin, points, best } = await load("curves");
    const values = Array.from({ length: 50 }, (_, i) => ({ x: i, step: i, value: Math.sin(i) + 2 }));
    const whole = smooth(values, 5);
    assert.deepEqual(smooth(values.slice(0, 20), 5), whole.slice(0, 20));
    near(whole[0].value, values[0].value, 1e-12, "the first value");
    const broken = values.map((p, i) => (i === 7 ? { ...p, value: NaN } : p));
    assert.ok(Number.isFinite(smooth(broken, 5)[8].value));
    const thinned = thin(Array.from({ length: 10000 }, (_, i) => ({ x: i, step: i, value: i === 5000 ? 9 : 0 })), 100);
    assert.ok(thinned.length <= 201 && thinned.some((p) => p.value === 9), "a peak survives");
    const records = [{ step: 1, loss: 2 }, { step: 2, epoch: 1, validation: { loss: null } }];
    assert.equal(points(records, "loss").length, 1);
    assert.ok(Number.isNaN(points(records, "validation loss")[0].value));
    assert.equal(best(values, "loss").value, Math.min(...values.map((p) => p.value)));
  });

  test("maps: scales, pooling, captions, CSV", async () => {
    const { shades, poolMatrix, describeCell, toCsv, rowMaximum, shortest } = await load("matrix");
    const m = { rows: 2, cols: 3, values: Float32Array.of(0.5, 0.5, NaN, 0.25, 0, 0.75), rowLabels: ["a,b", "c"], colLabels: ["x", "y", "z"] };
    assert.deepEqual(Array.from(shades(m, "row")).map((v) => (Number.isNaN(v) ? "masked" : +v.toFixed(4))), [1, 1, "masked", 0.3333, 0, 1]);
    near(shades(m, "lift")[0], 0.5, 1e-6, "half of two keys is even");
    assert.equal(poolMatrix(m, 2).values[0], 0.5);
    assert.equal(rowMaximum(m, 0), 0);
    assert.equal(rowMaximum(m, 1), 2);
    assert.match(describeCell(m, 0, 2), /masked/);
    assert.match(describeCell(m, 1, 2), /0\.7500, rank 1 of 3, 2\.25 × even/);
    assert.equal(toCsv(m), ',x,y,z\n"a,b",0.5,0.5,masked\nc,0.25,0,0.75\n');
    for (const v of [0.1, 1 / 3, 1e-20, 0.999999]) assert.equal(Math.fround(Number(shortest(Math.fround(v)))), Math.fround(v));
  });
}
