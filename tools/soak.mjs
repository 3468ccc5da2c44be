// node tools/soak.mjs PROGRAM [REQUESTS]: mixed requests to a server while trainings start and stop; its memory stays flat.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const program = resolve(process.argv[2] ?? "build/release/qkv");
const total = Number(process.argv[3] ?? 20000);
const clients = 8;
const folder = mkdtempSync(join(tmpdir(), "qkv-soak-"));
const runs = join(folder, "runs");
const train = (name, ...words) => execFileSync(program, ["train", ...words, "--out", join(runs, name)], { stdio: "ignore" });

train("letters", "reverse", "--attention", "multi-head", "--heads", "2", "--train-size", "400", "--epochs", "1", "--hidden", "16", "--max-length", "8");
train("text", "text", "--generated-size", "300", "--block", "64", "--epochs", "1", "--layers", "2", "--heads", "2", "--width", "32");

const server = spawn(program, ["serve", "--root", runs, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const port = await new Promise((done, fail) => {
  let said = "";
  server.stdout.on("data", (d) => {
    said += d;
    const found = /:(\d+)\//.exec(said);
    if (found) done(Number(found[1]));
  });
  server.on("exit", () => fail(new Error("the server ended")));
});

const agent = new Agent({ keepAlive: true, maxSockets: clients });
function ask(method, path, body, headers = {}) {
  return new Promise((done, fail) => {
    const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
    if (text !== undefined) headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text), ...headers };
    const r = request({ host: "127.0.0.1", port, method, path, headers, agent }, (answer) => {
      const parts = [];
      answer.on("data", (d) => parts.push(d));
      answer.on("end", () => done({ status: answer.statusCode, body: Buffer.concat(parts) }));
      answer.on("error", fail);
    });
    r.on("error", (e) => (e.code === "ECONNRESET" || e.code === "EPIPE" ? done({ status: 0, body: Buffer.alloc(0) }) : fail(e)));
    r.end(text);
  });
}

const counts = new Map();
const random = ((x) => () => (x = (x * 48271) % 2147483647) / 2147483647)(7);
const pick = (list) => list[Math.floor(random() * list.length)];
const letters = (n) => Array.from({ length: 1 + Math.floor(random() * n) }, () => pick("abcd")).join("");
let started = 0;
let trace = "";

async function startOrStop() {
  const r = await ask("POST", "/api/runs", { task: "reverse", settings: { epochs: 1000, lr: 0, "train-size": 200, hidden: 16 } });
  if (r.status === 201) {
    started++;
    const { id } = JSON.parse(r.body);
    const stopped = await ask("DELETE", `/api/runs/${id}`);
    if (stopped.status === 200) rmSoon.push(id);
  }
  return r;
}
const rmSoon = [];

const kinds = [
  () => ask("GET", "/api/runs"),
  () => ask("GET", pick(["/", "/app.js", "/app.css", "/api/lab", "/nothing"])),
  () => ask("GET", `/api/runs/${pick(["letters", "text", "nobody"])}/metrics`),
  () => ask("GET", `/api/runs/${pick(["letters", "text"])}/examples`),
  async () => {
    const model = pick(["letters", "text"]);
    const r = await ask("POST", "/api/trace", { model, input: model === "text" ? `the ${letters(200)}` : letters(8) });
    if (r.status === 200) trace = JSON.parse(r.body).id;
    return r;
  },
  () => ask("GET", `/api/trace/${trace || "0"}/${pick(["map", "thumbs?size=16", "figures", "map?what=scores", "map?rows=9:1"])}`),
  () => ask("POST", `/api/lab/${pick(["copy", "masks", "identity", "worked", "positions", "noisy-keys"])}`, {}),
  () => ask("POST", "/api/lab/noisy-keys", { settings: { samples: 1000000, keys: 256, dim: 1024 } }),
  () => ask("POST", "/api/trace", "{".repeat(5000)),
  () => ask("POST", "/api/trace", { model: "text", input: "x".repeat(200000) }),
  () => ask("POST", "/api/runs", { task: "translate", settings: { data: "/etc/passwd" } }),
  () => ask("POST", "/api/runs", { task: "reverse" }, { Origin: "http://evil.example" }),
];

const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1]) / 1024;
let sent = 0;
const memory = [];
async function client() {
  while (sent < total) {
    const n = ++sent;
    const r = n % 400 === 0 ? await startOrStop() : await pick(kinds)();
    counts.set(r.status, (counts.get(r.status) ?? 0) + 1);
    if (n % (total / 20) === 0) {
      memory.push(resident());
      console.log(`${String(n).padStart(6)} requests  ${memory.at(-1).toFixed(1)} MiB`);
    }
    if (n % 100 === 0) for (const id of rmSoon.splice(0)) setTimeout(() => rmSync(join(runs, id), { recursive: true, force: true }), 3000);
  }
}
const begun = Date.now();
await Promise.all(Array.from({ length: clients }, client));
const ended = new Promise((done) => server.on("exit", done));
const stopping = Date.now();
server.kill("SIGINT");
const code = await ended;
const stopSeconds = (Date.now() - stopping) / 1000;
agent.destroy();
rmSync(folder, { recursive: true, force: true });

// From the first quarter on, nothing grows.
const early = Math.max(...memory.slice(0, 5));
const late = Math.max(...memory.slice(-5));
console.log(`${total} requests in ${((Date.now() - begun) / 1000).toFixed(0)} s, ${started} trainings; statuses ${JSON.stringify(Object.fromEntries([...counts].sort()))}`);
console.log(`memory ${early.toFixed(1)} MiB early, ${late.toFixed(1)} MiB late; ended with ${code} in ${stopSeconds.toFixed(2)} s`);
const failures = [
  late > early * 1.1 + 8 && "memory grows",
  code !== 0 && "the server did not end properly",
  stopSeconds > 3 && "the server took longer than 3 s to end",
  [...counts.keys()].some((s) => s >= 500 && s !== 503) && "a request failed inside the server",
  started === 0 && "no training was started",
].filter(Boolean);
for (const f of failures) console.error(`soak: ${f}`);
process.exit(failures.length === 0 ? 0 : 1);
