// The lab of the WebAssembly build under Node.js: every row that is not timed equals the program's to 1e-5.
// node lab_test.mjs build/wasm/qkv.js build/release/qkv
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import test from "node:test";
import { load, request } from "./program.mjs";

const [script, program] = process.argv.slice(2).map((path) => resolve(path));
const call = await load(script);
const ask = (...words) => request(call, ...words);

const { experiments } = ask("GET", "/api/lab").body;
assert.ok(experiments.length >= 19, `${experiments.length} experiments`);

for (const { name } of experiments) {
  test(name, () => {
    const { status, body } = ask("POST", `/api/lab/${name}`);
    assert.equal(status, 200, JSON.stringify(body));
    const want = JSON.parse(execFileSync(program, ["lab", name, "--json"], { encoding: "utf8" })).rows;
    assert.equal(body.rows.length, want.length);
    let compared = 0;
    want.forEach((row, i) => {
      assert.equal(body.rows[i].quantity, row.quantity);
      if (row.kind === "timed") return;
      for (const what of ["predicted", "measured"]) {
        const [a, b] = [body.rows[i][what], row[what]];
        if (a === null || b === null) {
          assert.equal(a, b);
          continue;
        }
        // Relative; beside rounding of f32, which a difference that should be 0 consists of.
        const close = Math.abs(a - b) <= 1e-5 * Math.max(Math.abs(a), Math.abs(b)) + 1e-6;
        assert.ok(close, `${row.at}, ${row.quantity}, ${what}: ${a} and ${b}`);
        compared++;
      }
    });
    assert.ok(compared > 0 || want.every((row) => row.kind === "timed"), "nothing was compared");
  });
}

test("requests that no route answers are refused in a sentence", () => {
  assert.equal(ask("GET", "/api/nothing").status, 404);
  assert.equal(ask("GET", "no path").status, 400);
  assert.equal(ask("POST", "/api/runs", '{"task": "reverse", "settings": {"epochs": -1}}').status, 400);
  assert.equal(ask("POST", "/api/trace", "{").status, 400);
});
