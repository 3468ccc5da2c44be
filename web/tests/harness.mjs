// What the browser tests share: small models really trained, a server, a headless Chromium, and a watch over both.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const program = process.env.QKV_PROGRAM;
if (!program || !existsSync(program)) throw new Error("set QKV_PROGRAM to the built program");

export const folder = mkdtempSync(join(tmpdir(), "qkv-page-"));
export const runs = join(folder, "runs");

/** Letters that would hurt if they were taken for markup or for parts of an address. */
export const oddLetters = Array.from(new Set("</script>b&0=😀")).join("");

export const qkv = (...words) =>
  execFileSync(program, words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

function train(name, ...words) {
  qkv(
    "train",
    "reverse",
    "--out",
    join(runs, name),
    "--validation-size",
    "60",
    "--eval-every",
    "20",
    "--checkpoint-every",
    "20",
    "--keep",
    "100",
    ...words,
  );
}

/** Two heads, trained until it can do it; one with odd letters and additive scores; one without attention; one small model of every other task; no run at all. */
export function trainModels() {
  mkdirSync(runs, { recursive: true });
  train(
    "reverse-small",
    "--attention",
    "multi-head",
    "--heads",
    "2",
    "--max-length",
    "10",
    "--train-size",
    "3000",
    "--epochs",
    "6",
  );
  train(
    "odd",
    "--attention",
    "additive",
    "--alphabet",
    oddLetters,
    "--max-length",
    "12",
    "--train-size",
    "1000",
    "--epochs",
    "2",
  );
  train("none", "--attention", "none", "--max-length", "10", "--train-size", "600", "--epochs", "1");
  const small = ["--layers", "2", "--heads", "2", "--width", "32"];
  qkv(
    "train",
    "translate",
    "--out",
    join(runs, "translate-small"),
    "--model",
    "transformer",
    ...small,
    "--inner",
    "64",
    "--vocabulary",
    "300",
    "--generated-size",
    "300",
    "--epochs",
    "3",
    "--warmup",
    "20",
  );
  qkv(
    "train",
    "images",
    "--out",
    join(runs, "images-small"),
    "--data",
    "shapes",
    "--train-size",
    "400",
    "--epochs",
    "2",
    "--patch",
    "4",
    ...small,
  );
  qkv(
    "train",
    "text",
    "--out",
    join(runs, "text-small"),
    "--generated-size",
    "300",
    "--block",
    "48",
    "--epochs",
    "1",
    ...small,
  );
  mkdirSync(join(runs, "broken"));
  writeFileSync(join(runs, "broken", "config.json"), "{ this is not JSON");
}

/** A map as `qkv map` writes it: rows of numbers, NaN where masked. */
export function mapOfProgram(run, input, ...words) {
  const file = join(folder, "map.csv");
  qkv("map", join(runs, run), "--input", input, "--out", file, ...words);
  return parseCsv(readFileSync(file, "utf8"));
}

export function parseCsv(text) {
  const rows = [];
  let cells = [""];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') cells[cells.length - 1] += text[++i];
      else if (c === '"') quoted = false;
      else cells[cells.length - 1] += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") cells.push("");
    else if (c === "\n") {
      rows.push(cells);
      cells = [""];
    } else if (c !== "\r") cells[cells.length - 1] += c;
  }
  const value = (t) => (t === "masked" || t === "" ? NaN : Number(t));
  return {
    columns: rows[0].slice(1),
    rows: rows.slice(1).map((r) => r[0]),
    values: rows.slice(1).map((r) => r.slice(1).map(value)),
    lines: rows,
  };
}

/** What still runs when the tests are over, passed or failed. */
const servers = new Set();
const browsers = new Set();

/** Starts `qkv serve` and waits for its address. */
export async function serve(root, port = 0) {
  const child = spawn(program, ["serve", "--root", root, "--port", String(port)], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  servers.add(child);
  child.on("exit", () => servers.delete(child));
  let said = "";
  let errors = "";
  child.stderr.on("data", (d) => (errors += d));
  const url = await new Promise((done, fail) => {
    child.stdout.on("data", (d) => {
      said += d;
      const found = /http:\/\/[^/]+\//.exec(said);
      if (found) done(found[0]);
    });
    child.on("exit", () => fail(new Error(`the server ended: ${errors}`)));
  });
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid,
    errors: () => errors,
    stop: () =>
      new Promise((done) => {
        if (child.exitCode !== null || child.signalCode !== null) return done(child.exitCode);
        child.on("exit", done);
        child.kill("SIGINT");
      }),
    kill: () =>
      new Promise((done) => {
        child.on("exit", done);
        child.kill("SIGKILL");
      }),
  };
}

export async function launch(extra = []) {
  const path =
    process.env.QKV_CHROMIUM ??
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  if (!path) throw new Error("no Chromium found; install the package chromium or set QKV_CHROMIUM");
  // Chromium's sandbox refuses to work for root; the tests open only our own page.
  const browser = await chromium.launch({
    executablePath: path,
    headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...extra],
  });
  browsers.add(browser);
  return browser;
}

/** A page that fails the test on console errors (but those the test expects) and on requests that leave the machine. */
export async function open(browser, url, { hash = "", expect = [], ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    acceptDownloads: true,
    reducedMotion: "reduce",
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  const problems = [];
  const own = url ? new URL(url).origin : "";
  page.on("console", (m) => {
    if (m.type() === "error" && !expect.some((e) => e.test(m.text())))
      problems.push(`console: ${m.text()} ${m.location().url}`);
  });
  page.on("pageerror", (e) => problems.push(`error: ${e.message}`));
  page.on("request", (r) => {
    if (!r.url().startsWith(own) && !/^(blob|data):/.test(r.url())) problems.push(`foreign request: ${r.url()}`);
  });
  if (url) await page.goto(url + hash);
  return {
    page,
    /** Ends the page; call it last. */
    close: async () => {
      await context.close();
      assert.deepEqual(problems, []);
    },
  };
}

export const hashOf = (view, state = {}) => `#/${view}?${new URLSearchParams(state)}`;
export const ready = (page, selector) => page.waitForSelector(`${selector}[data-ready="true"]`);

/** What a save button gives, as bytes. */
export async function saved(page, kind) {
  await page.waitForSelector(`#save-${kind}:not([disabled])`, { state: "attached" });
  if (!(await page.$eval(".menu", (m) => m.open))) await page.click(".menu summary");
  const [file] = await Promise.all([page.waitForEvent("download"), page.click(`#save-${kind}`)]);
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

export function near(a, b, tolerance, what) {
  if (Number.isNaN(a) && Number.isNaN(b)) return;
  assert.ok(Math.abs(a - b) <= tolerance, `${what}: ${a} and ${b} differ by more than ${tolerance}`);
}

export async function cleanUp() {
  for (const child of servers) child.kill("SIGKILL");
  await Promise.all([...browsers].map((b) => b.close()));
  rmSync(folder, { recursive: true, force: true });
}
