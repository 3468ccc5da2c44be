// A page on another origin tries what a browser lets it try: nothing is started, stopped or read.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import test from "node:test";
import { folder, launch, serve } from "./harness.mjs";

/** What the hostile page runs; `target` is the server's own origin. */
function attack(target) {
  const order = JSON.stringify({ task: "reverse", settings: { epochs: 1 } });
  const quiet = (promise) =>
    promise.then(
      (r) => `answered ${r.type} ${r.status}`,
      (e) => `failed ${e.message}`,
    );
  const post = (type, body, mode = "no-cors", method = "POST") =>
    quiet(
      fetch(`${target}/api/runs`, {
        method,
        mode,
        headers: type ? { "Content-Type": type } : {},
        body,
        credentials: "include",
      }),
    );
  // The body of a request that is refused, written as if it were the next request on the same connection.
  const inner = `POST /api/runs HTTP/1.1\r\nHost: ${new URL(target).host}\r\nContent-Type: application/json\r\nContent-Length: ${order.length}\r\n\r\n${order}`;
  const form = (enctype, name, value) => {
    const frame = document.createElement("iframe");
    frame.name = `frame-${Math.random()}`;
    const f = Object.assign(document.createElement("form"), {
      action: `${target}/api/runs`,
      method: "POST",
      enctype,
      target: frame.name,
    });
    f.append(Object.assign(document.createElement("input"), { name, value }));
    document.body.append(frame, f);
    f.submit();
  };
  const element = (tag, values) => document.body.append(Object.assign(document.createElement(tag), values));
  form("text/plain", `${order.slice(0, -1)},"x":"`, '"}');
  form("application/x-www-form-urlencoded", "task", "reverse");
  form("multipart/form-data", "task", "reverse");
  element("img", { src: `${target}/api/runs` });
  element("script", { src: `${target}/api/runs` });
  element("script", { src: `${target}/app.js` });
  element("iframe", { src: target });
  navigator.sendBeacon(`${target}/api/runs`, new Blob([order], { type: "text/plain" }));
  navigator.sendBeacon(`${target}/api/runs`, new Blob([inner], { type: "text/plain" }));
  const socket = new Promise((done) => {
    const s = new WebSocket(`${target.replace("http", "ws")}/api/runs`);
    s.onopen = () => done("answered websocket");
    s.onerror = () => done("failed websocket");
  });
  return Promise.all([
    post("text/plain", order),
    post("text/plain", inner),
    post("", inner),
    post("application/json", order, "cors"),
    post("application/x-www-form-urlencoded", inner),
    post("text/plain", "x".repeat(2 << 20) + inner),
    quiet(fetch(`${target}/api/runs/kept`, { method: "DELETE", mode: "cors" })),
    quiet(fetch(`${target}/api/runs`, { mode: "cors" })),
    quiet(fetch(`${target}/api/runs/`, { mode: "no-cors" })),
    socket,
  ]);
}

/** The hostile site, on a port of its own. */
async function hostileSite() {
  const server = createServer((_, answer) =>
    answer.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>prizes</title><body>"),
  ).listen(0, "127.0.0.1");
  await new Promise((done) => server.on("listening", done));
  return { port: server.address().port, close: () => server.close() };
}

export function hostileTests() {
  test("hostile pages: nothing is started, stopped or read", async (t) => {
    const root = join(folder, "hostile-runs");
    const victim = await serve(root);
    const site = await hostileSite();
    // Any name may point to this machine: that is what DNS rebinding does.
    const browser = await launch(["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
    try {
      const own = `http://127.0.0.1:${victim.port}`;
      const json = async (path, init) => (await fetch(own + path, init)).json();
      const settings = { epochs: 100000, lr: 0, "train-size": 256, hidden: 16 };
      const started = await json("/api/runs", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ task: "reverse", settings }),
      });
      assert.equal(started.id, "reverse");
      for (const origin of [
        `http://localhost:${site.port}`,
        `http://127.0.0.1:${site.port}`,
        `http://evil.example:${site.port}`,
      ]) {
        for (const target of [own, `http://localhost:${victim.port}`, `http://evil.example:${victim.port}`]) {
          await t.test(`${new URL(origin).hostname} asks ${new URL(target).hostname}`, async () => {
            const page = await (await browser.newContext()).newPage();
            await page.goto(origin);
            const results = await page.evaluate(attack, target);
            // An opaque answer is one that was sent but tells the page nothing.
            for (const r of results) assert.match(r, /^(failed|answered opaque 0)/);
            await page.waitForTimeout(300);
            await page.context().close();
          });
        }
      }
      await t.test("a name that was made to point here gets nothing", async () => {
        const page = await (await browser.newContext()).newPage();
        for (const path of ["/", "/app.js", "/api/runs", "/api/lab"]) {
          const answer = await page.goto(`http://evil.example:${victim.port}${path}`);
          assert.equal(answer.status(), 403, path);
        }
        await page.context().close();
      });
      const { runs } = await json("/api/runs");
      assert.deepEqual(
        runs.map((r) => [r.id, r.training]),
        [["reverse", true]],
      );
      assert.deepEqual(readdirSync(root), ["reverse"]);
    } finally {
      site.close();
      await browser.close();
      assert.equal(await victim.stop(), 0);
    }
  });
}
