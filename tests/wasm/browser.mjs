// By hand: whether any browser trains to the same bits as Node.js.
// node tests/wasm/browser.mjs build/wasm/site firefox-esr --headless
// Serves the site on loopback with a page that trains the small reversal model for 200 steps in a worker of the site,
// and compares the SHA-256 of the weights with that of train.mjs.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { load, request } from "./program.mjs";
import { smallOrder } from "./small.mjs";

const [site, browser, ...words] = process.argv.slice(2);
const step = 200;
const folder = mkdtempSync(join(tmpdir(), "qkv-browser-"));
const script = join(site, "..", "qkv.js");
const order = smallOrder();

/** What the page does; runs in the browser. */
async function train({ order, step }) {
  const worker = new Worker("worker.js");
  const call = (name, ...values) =>
    new Promise((done) => {
      worker.onmessage = ({ data }) => done(data);
      worker.postMessage({ id: 1, name, values });
    });
  const json = ({ body }) => JSON.parse(new TextDecoder().decode(body));
  worker.postMessage({ base: new URL(".", location.href).href, inside: {} });
  const order_bytes = new TextEncoder().encode(JSON.stringify(order)).buffer;
  const { id } = json(await call("qkv_answer", "POST", "/api/runs", order_bytes));
  await call("qkv_train_begin", id);
  while (json(await call("qkv_train_advance", 0.2)).progress.step <= step);
  const { body } = await call("qkv_read_file", id, `checkpoints/${String(step).padStart(8, "0")}/model.safetensors`);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  const text = [...hash].map((b) => b.toString(16).padStart(2, "0")).join("");
  await fetch("/done", { method: "POST", body: JSON.stringify({ text, agent: navigator.userAgent }) });
}

const page = `<!doctype html><script>(${train})(${JSON.stringify({ order, step })}).catch((e) =>
  fetch("/done", { method: "POST", body: JSON.stringify({ text: String(e) }) }))</script>`;
const answer = new Promise((done) => {
  const server = createServer((request, response) => {
    if (request.url === "/done") {
      let body = "";
      request.on("data", (d) => (body += d)).on("end", () => (response.end(), server.close(), done(JSON.parse(body))));
      return;
    }
    const types = { "/": "text/html", "/worker.js": "text/javascript" };
    try {
      const body = request.url === "/" ? page : readFileSync(join(site, request.url));
      response.writeHead(200, { "Content-Type": types[request.url] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  server.listen(0, "127.0.0.1", () => {
    const address = `http://127.0.0.1:${server.address().port}/`;
    const profile = join(folder, "profile");
    const own = /firefox/.test(browser) ? ["--profile", profile, "--no-remote"] : [`--user-data-dir=${profile}`];
    execFileSync("mkdir", ["-p", profile]);
    const child = spawn(browser, [...words, ...own, address], { stdio: "ignore", env: { ...process.env, HOME: folder } });
    child.on("error", (e) => done({ text: String(e) }));
    process.on("exit", () => child.kill("SIGKILL"));
  });
});

const call = await load(script);
const said = await answer;
const config = join(folder, "config.json");
const { id } = request(call, "POST", "/api/runs", JSON.stringify(order)).body;
writeFileSync(config, call("qkv_read_file", id, "config.json").body);
const train_script = fileURLToPath(new URL("train.mjs", import.meta.url));
const want = String(execFileSync(process.execPath, [train_script, script, config, String(step)])).trim();
console.log(`${said.agent ?? browser}\n${said.text}\nNode.js ${process.version}\n${want}`);
console.log(said.text === want ? "the same bits" : "DIFFERENT");
process.exitCode = said.text === want ? 0 : 1;
setTimeout(() => {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit();
}, 500);
