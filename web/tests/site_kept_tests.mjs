// Nothing is lost: a killed browser, a sleeping tab, two tabs, storage that is refused, a program that fails.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { after } from "node:test";
import { chromium } from "playwright-core";
import { folder, hashOf, open, qkv, ready, runs } from "./harness.mjs";
import { browser, line, settled, url } from "./site_setup.mjs";

const interval = 50; // steps between the checkpoints of the small model

const past = (page, run, step) =>
  page.waitForFunction(
    ([l, least]) => {
      const found = /step (\d+) of/.exec(document.querySelector(l)?.textContent ?? "");
      return found && Number(found[1]) >= least ? Number(found[1]) : 0;
    },
    [line(run), step],
    { timeout: 300000 },
  );
const stepOf = async (page, run, least) => (await past(page, run, least)).jsonValue();

/** A Chromium of its own with a profile that outlives it. */
async function withProfile(profile) {
  const path = process.env.QKV_CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
  const words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
  const child = spawn(path, [...words, "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"], {
    detached: true, // a group of its own, killed at once
    stdio: ["ignore", "ignore", "pipe"],
  });
  const kill = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // it has ended
    }
  };
  after(kill);
  let said = "";
  const address = await new Promise((done, fail) => {
    child.stderr.on("data", (d) => {
      said += d;
      const found = /listening on (ws:\S+)/.exec(said);
      if (found) done(found[1]);
    });
    child.on("exit", () => fail(new Error(`Chromium ended: ${said}`)));
  });
  const over = await chromium.connectOverCDP(address);
  return { page: over.contexts()[0].pages()[0], kill, ended: new Promise((done) => child.on("exit", done)) };
}

/** The newest checkpoint that this browser keeps of a run, read without the page. */
const keptStep = (page, run) =>
  page.evaluate(
    (id) =>
      new Promise((done) => {
        const name = `qkv ${new URL(".", location.href).pathname}`;
        indexedDB.open(name).onsuccess = (e) => {
          const all = e.target.result.transaction("files").objectStore("files").getAllKeys();
          all.onsuccess = () => {
            const steps = all.result.map(([r, file]) => r === id && /^checkpoints\/(\d+)\/state/.exec(file));
            done(Math.max(0, ...steps.filter(Boolean).map((m) => Number(m[1]))));
          };
        };
      }),
    run,
  );

test("a browser that is killed while it trains loses at most the steps since the last checkpoint", async () => {
  const profile = join(folder, "profile");
  const first = await withProfile(profile);
  await first.page.goto(`${url}#/train`);
  await first.page.click("text=Train a small reversal model");
  const step = await stepOf(first.page, "reverse", 2 * interval + 10);
  first.kill();
  await first.ended;
  const second = await withProfile(profile);
  await second.page.goto(`${url}licences.txt`); // the same origin, without the page
  const kept = await keptStep(second.page, "reverse");
  assert.ok(kept >= step - (step % interval), `killed at step ${step}, kept up to ${kept}`);
  await second.page.goto(`${url}#/train`);
  const on = await stepOf(second.page, "reverse", 1);
  assert.ok(on >= kept, `it went on at step ${on}, not after ${kept}`);
  await stepOf(second.page, "reverse", kept + interval);
  await second.page.click("[aria-label='Stop reverse']");
  await settled(second.page, "reverse");
  assert.equal(await second.page.$(`${line("reverse")} .error`), null);
  second.kill();
});

test("a sleeping tab trains on when it wakes", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  await page.click("text=Train a small reversal model");
  await stepOf(page, "reverse", 20);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Page.setWebLifecycleState", { state: "frozen" });
  await new Promise((go) => setTimeout(go, 1500));
  await devtools.send("Page.setWebLifecycleState", { state: "active" });
  const step = await stepOf(page, "reverse", 1);
  await stepOf(page, "reverse", step + interval);
  await page.click("[aria-label='Stop reverse']");
  await settled(page, "reverse");
  assert.equal(await page.$(`${line("reverse")} .error`), null);
  await close();
});

test("two tabs: a run trains in one and the other says so; what both begin becomes two runs", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  const other = await page.context().newPage();
  await other.goto(`${url}#/train`);
  await other.waitForSelector("#new-training");
  await page.click("text=Train a small reversal model");
  await stepOf(page, "reverse", 1);
  // The other tab was opened before: it learns of the run when it begins one, which takes another name.
  await other.click("text=Train a small reversal model");
  await stepOf(other, "reverse-2", 1);
  const third = await page.context().newPage();
  await third.goto(`${url}#/train`);
  await third.waitForSelector("text=Another tab of this browser trains reverse");
  for (const run of ["reverse", "reverse-2"]) {
    await third.waitForSelector(line(run));
    assert.equal(await third.$(`${line(run)} em`), null, `a second tab trains ${run}`);
  }
  await third.close();
  await page.click("[aria-label='Stop reverse']");
  await settled(page, "reverse");
  await other.click("[aria-label='Stop reverse-2']");
  await settled(other, "reverse-2");
  await other.close();
  await page.reload();
  for (const run of ["reverse", "reverse-2"]) {
    await page.waitForSelector(line(run));
    assert.equal(await page.$(`${line(run)} .error`), null);
    await page.goto(url + hashOf("explore", { m: run, x: "abc" }));
    await ready(page, ".map-box");
    await page.goto(`${url}#/train`);
  }
  await close();
});

test("two tabs that begin a run at the same moment: neither writes over the other", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  const other = await page.context().newPage();
  await other.goto(`${url}#/train`);
  await other.waitForSelector("#new-training");
  await page.waitForSelector("#new-training");
  await Promise.all([page, other].map((p) => p.click("text=Train a small reversal model")));
  const trains = (p) =>
    p.waitForFunction(
      () => {
        const all = [...document.querySelectorAll(".run")].filter((r) => /^reverse(-2)?$/.test(r.dataset.run));
        const own = all.find((r) => /step [1-9]\d* of/.test(r.textContent));
        return own?.dataset.run ?? (all.some((r) => r.querySelector(".error")) && "refused");
      },
      undefined,
      { timeout: 60000 },
    );
  const ends = await Promise.all([page, other].map(async (p) => (await trains(p)).jsonValue()));
  assert.notEqual(ends[0], ends[1], "both tabs train one run");
  for (const [i, p] of [page, other].entries()) {
    if (ends[i] === "refused") continue;
    const stop = await p.$(`[aria-label='Stop ${ends[i]}']`); // on a fast machine it has ended by itself
    await stop?.click();
    await settled(p, ends[i]);
    assert.equal(await p.$(`${line(ends[i])} .error`), null);
  }
  await close();
});

test("a frame that may keep nothing says so, trains and gives the run as a file", async () => {
  const holder = join(folder, "public", "frame.html");
  writeFileSync(
    holder,
    '<iframe sandbox="allow-scripts allow-downloads" width=1200 height=700 src="a course.html"></iframe>',
  );
  const { page, close } = await open(browser, new URL("../../frame.html", url).href, { expect: [/404/] }); // an icon
  const frame = await (await page.waitForSelector("iframe")).contentFrame();
  await frame.waitForSelector("text=This browser keeps nothing for this page");
  await ready(frame, ".map-box");
  await frame.click("#view-train");
  assert.match(await frame.textContent("#storage-note"), /keeps nothing/);
  await frame.click("text=Train a small reversal model");
  await stepOf(frame, "reverse", interval);
  await frame.click("[aria-label='Stop reverse']");
  await settled(frame, "reverse");
  const [got] = await Promise.all([page.waitForEvent("download"), frame.click("[aria-label='Download reverse']")]);
  const root = join(folder, "framed");
  qkv("runs", "add", await got.path(), "--root", root);
  assert.match(qkv("predict", join(root, "reverse"), "abc"), /^[a-z]*\n$/);
  await close();
});

test("a program that fails is replaced, and one sentence says why", async () => {
  const { page, close } = await open(browser, url, { hash: hashOf("explore", { m: "reverse-small", x: "abcdab" }) });
  await ready(page, ".map-box");
  // A call with an address outside its memory, which no page makes: WebAssembly traps.
  await page
    .workers()[0]
    .evaluate(() =>
      dispatchEvent(
        new MessageEvent("message", { data: { id: -1, name: "qkv_read_file", values: [2 ** 31 - 9, 2 ** 31 - 9] } }),
      ),
    );
  await page.waitForSelector(
    "text=/The program in this tab failed and was started again: .*memory access out of bounds/",
  );
  await page.click(".banner.notice button");
  await page.fill("#input", "dcba");
  await page.click("form button[type=submit]");
  const want = qkv("predict", join(runs, "reverse-small"), "dcba").trim();
  await page.waitForFunction((w) => document.querySelector("#output")?.textContent === w, want);
  await close();
});

test("memory that runs out: one sentence, and the page goes on", async () => {
  const { page, close } = await open(browser, url, { hash: "#/train" });
  await page.click("#new-training");
  await page.selectOption("#new-task", "text");
  await page.click(".new-training details summary");
  for (const [name, value] of Object.entries({ width: 8184, layers: 1 }))
    await page.fill(`#new-${name}`, String(value));
  await page.click("#start-training");
  const sentence = "text=failed and was started again: not enough memory for this";
  await page.waitForSelector(sentence, { timeout: 300000 });
  await page.goto(url + hashOf("explore", { m: "reverse-small", x: "abcdab" }));
  await ready(page, ".map-box");
  await close();
});
