// Trains under Node.js as a tab does: node train.mjs build/wasm/qkv.js [CONFIG.json STEP]
// With the configuration of a run it trains to that step and prints the SHA-256 of the weights; without, the reversal
// model of the page's button, and says how long that took.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { load, request } from "./program.mjs";
import { smallOrder } from "./small.mjs";

const [script, config, step] = process.argv.slice(2);
const call = await load(script);

/** The settings of that run which a page may choose. */
function settingsOf(file) {
  const { task, settings } = JSON.parse(readFileSync(file, "utf8"));
  const { tasks } = request(call, "GET", "/api/tasks").body;
  const open = tasks.find((t) => t.name === task).settings.map((s) => s.name);
  return { task, settings: Object.fromEntries(open.map((name) => [name, settings[name]])) };
}
const { status, body } = request(call, "POST", "/api/runs", JSON.stringify(config ? settingsOf(config) : smallOrder()));
if (status !== 201) throw new Error(JSON.stringify(body));
const begin = process.cpuUsage();
const clock = performance.now();
call("qkv_train_begin", body.id);
let news = { step: 0 };
for (let more = true; more; ) {
  const answer = call("qkv_train_advance", 0.2);
  const said = JSON.parse(answer.body);
  if (said.error) throw new Error(said.error);
  news = said.progress;
  more = answer.status === 202 && !(step && news.step > step);
}
const folder = `checkpoints/${String(step).padStart(8, "0")}`;
if (step) {
  const weights = call("qkv_read_file", body.id, `${folder}/model.safetensors`);
  if (weights.status !== 200) throw new Error(String(weights.body));
  console.log(createHash("sha256").update(weights.body).digest("hex"));
} else {
  const used = process.cpuUsage(begin);
  const { exact_match } = JSON.parse(call("qkv_read_file", body.id, "result.json").body);
  const wall = ((performance.now() - clock) / 1e3).toFixed(1);
  const cpu = ((used.user + used.system) / 1e6).toFixed(1);
  console.log(`reversal model, Node.js ${process.version}: ${news.step} steps in ${wall} s (${cpu} s of processor time), exact match ${exact_match}`);
}
