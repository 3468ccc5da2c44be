// Bundles the page into a folder: index.html, app.js and app.css, nothing else and nothing from elsewhere; and
// notebook.js and notebook.css, which show a model's attention in a file of their own.
// node build.mjs OUT --site WASM: the page of a site instead, with the program of the folder WASM in its worker, as
// files and as one file (single.html, into which `qkv site` puts runs).

import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const [out = "dist", mode, wasm] = process.argv.slice(2);
await mkdir(out, { recursive: true });
const options = {
  bundle: true,
  minify: true,
  target: "es2020",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  outdir: out,
  logLevel: "warning",
  metafile: true,
};
const app = { ...options, entryPoints: { app: "src/main.tsx" }, format: "esm" };

/** No scripts, styles, pictures or connections but the site's own, no eval; charts write style elements, exports are blobs. */
const policy = (own, script, worker) =>
  [
    "default-src 'none'",
    `script-src ${script} 'wasm-unsafe-eval'`,
    `style-src ${own} 'unsafe-inline'`,
    `img-src ${own} blob: data:`,
    `connect-src ${own || "'none'"}`,
    `worker-src ${worker}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");

/** The page with its policy in front; `kind` says what sort of site it is. */
const marked = (html, kind, rules) =>
  html
    .replace("<html", `<html data-site="${kind}"`)
    .replace('<meta charset="utf-8" />', `$&\n    <meta http-equiv="Content-Security-Policy" content="${rules}" />`);

/** A file inside the page: a script element that no browser runs. */
const inside = (name, text) => `<script type="text/plain" data-file="${name}">${text}</script>\n`;

/** Everything in one file: script, style, worker and program; no request is left to make. */
function single(html, { app, style, worker, wasm, licences }) {
  // Inside a script element these two would begin or end something.
  const plain = (text) => text.replace(/<(?=\/script|!--)/gi, "\\x3c");
  const script = plain(app);
  const hash = createHash("sha256").update(script).digest("base64");
  const files =
    inside("worker.js", plain(worker)) + inside("qkv.wasm", wasm.toString("base64")) + inside("licences.txt", licences);
  const replaced = (text, what, by) => {
    if (!text.includes(what)) throw new Error(`index.html has no ${what}`);
    return text.replace(what, () => by);
  };
  let page = marked(html, "single", policy("", `'sha256-${hash}'`, "blob:"));
  page = replaced(page, '<link rel="stylesheet" href="app.css" />', `<style>${style}</style>`);
  page = replaced(page, '<script type="module" src="app.js"></script>', `<script type="module">${script}</script>`);
  return replaced(page, "</body>", `${files}<!-- runs -->\n</body>`);
}

/** The licences of what is inside: packages of npm by what was bundled, Debian's by what was compiled in. */
async function licences(metafile) {
  const names = new Set(
    Object.keys(metafile.inputs).flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  );
  const texts = [`qkv\n\n${await readFile("../LICENSE", "utf8")}`];
  for (const name of [...names].sort()) {
    const file = (await readdir(`node_modules/${name}`)).find((f) => /^licen[cs]e/i.test(f));
    if (file) texts.push(`${name}\n\n${await readFile(`node_modules/${name}/${file}`, "utf8")}`);
  }
  for (const name of ["libhwy-dev", "nlohmann-json3-dev", "emscripten"]) {
    const text = await readFile(`/usr/share/doc/${name}/copyright`, "utf8").catch(() => "");
    if (text) texts.push(`${name}\n\n${text}`);
  }
  return texts.join(`\n${"=".repeat(100)}\n\n`);
}

if (mode === "--site") {
  const { metafile } = await build(app);
  const worker = { ...options, entryPoints: { worker: "src/site/worker.ts" }, format: "iife", write: false };
  const { outputFiles } = await build(worker);
  await build({ ...options, entryPoints: { offline: "src/site/offline.ts" }, format: "iife" });
  const html = await readFile("src/index.html", "utf8");
  const parts = {
    app: await readFile(`${out}/app.js`, "utf8"),
    style: await readFile(`${out}/app.css`, "utf8"),
    worker: `${await readFile(`${wasm}/qkv.js`, "utf8")}\n${outputFiles[0].text}`,
    wasm: await readFile(`${wasm}/qkv.wasm`),
    licences: await licences(metafile),
  };
  await writeFile(`${out}/worker.js`, parts.worker);
  await writeFile(`${out}/qkv.wasm`, parts.wasm);
  await writeFile(`${out}/licences.txt`, parts.licences);
  await writeFile(`${out}/index.html`, marked(html, "folder", policy("'self'", "'self'", "'self'")));
  await writeFile(`${out}/single.html`, single(html, parts));
} else {
  await build(app);
  await build({ ...options, entryPoints: { notebook: "src/notebook.tsx" }, format: "iife" });
  await copyFile("src/index.html", `${out}/index.html`);
}
