// How fast a browser's tab computes beside the native kernels of the same vector width:
// node bench/site.mjs build/wasm/bench_site.js build/release/bench/bench_site [ROUNDS]
// The two take turns; the least processor times of all rounds are compared.
import { execFileSync } from "node:child_process";

const [wasm, native, rounds = 5] = process.argv.slice(2);
const run = (...words) => JSON.parse(execFileSync(words[0], words.slice(1), { encoding: "utf8" }));
const least = [{}, {}];
for (let round = 0; round < rounds; round++) {
  [run(native, "SSE4"), run(process.execPath, "--no-experimental-fetch", wasm)].forEach((times, i) => {
    for (const [name, ms] of Object.entries(times)) {
      least[i][name] = typeof ms === "number" ? Math.min(ms, least[i][name] ?? ms) : ms;
    }
  });
}
console.log(`Node.js ${process.version}, ${rounds} rounds, one thread, least processor times`);
for (const name of Object.keys(least[0]).filter((key) => key !== "target")) {
  const [a, b] = least.map((times) => times[name]);
  console.log(`${name}: ${least[0].target} ${a.toFixed(2)} ms, ${least[1].target} ${b.toFixed(2)} ms, ${(a / b).toFixed(2)} times as fast`);
}
