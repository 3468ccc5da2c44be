// What Python shows in a notebook, in a browser without a server: map, lines and heads, with nothing loaded.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { folder, program } from "./harness.mjs";

const script = `
import numpy as np, qkv
weights = np.random.default_rng(0).dirichlet(np.ones(6), (2, 3, 6)).astype("f4")
view = qkv.show(weights, ["<b>", "'", "c", "d", "e", "f"], title="two layers")
view.save("view.html")
open("exported.html", "w").write("<body>" + view._repr_html_() + "</body>")
`;

/** A page with a file of the folder open; `asked` are the addresses it asked for, `errors` what it complained of. */
async function opened(browser, name) {
  const page = await browser.newPage();
  const asked = [];
  const errors = [];
  page.on("request", (r) => asked.push(r.url()));
  page.on("pageerror", (e) => errors.push(e.message));
  await page.goto(pathToFileURL(join(folder, name)).href);
  return { page, asked, errors };
}

export function notebookTests(site) {
  test("attention in a notebook: the map, a head of another layer, the lines", async () => {
    const modules = join(dirname(program), "python");
    execFileSync("/usr/bin/python3", ["-c", script], { cwd: folder, env: { ...process.env, PYTHONPATH: modules } });
    const { page, asked, errors } = await opened(site.browser, "view.html");
    await page.hover(".map-box canvas", { position: { x: 150, y: 150 } });
    await page.waitForFunction(() => /→/.test(document.querySelector(".readout")?.textContent));
    await page.click("#tab-heads");
    await page.click('button[aria-label="Layer 1, head 2"]');
    assert.equal(await page.inputValue("#layer"), "1");
    assert.equal(await page.inputValue("#head"), "2");
    await page.click("#tab-lines");
    await page.waitForFunction(() => Number(document.querySelector(".lines canvas")?.dataset.lines) > 0);
    assert.equal(asked.length, 1, asked.join());
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("the same in the frame of an exported notebook", async () => {
    const { page, errors } = await opened(site.browser, "exported.html");
    await page.frameLocator("iframe").locator(".map-box canvas").waitFor();
    assert.deepEqual(errors, []);
    await page.close();
  });
}
