// Bundles the page into a folder: index.html, app.js and app.css, nothing else and nothing from elsewhere; and
// notebook.js and notebook.css, which show a model's attention in a file of their own.
// node build.mjs OUT --site WASM: the page of a site instead, with the program of the folder WASM in its worker.

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
const policy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' blob: data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

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
  await writeFile(`${out}/worker.js`, `${await readFile(`${wasm}/qkv.js`, "utf8")}\n${outputFiles[0].text}`);
  await copyFile(`${wasm}/qkv.wasm`, `${out}/qkv.wasm`);
  const html = await readFile("src/index.html", "utf8");
  const marked = html
    .replace("<html", "<html data-site")
    .replace('<meta charset="utf-8" />', `$&\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`);
  await writeFile(`${out}/index.html`, marked);
  await writeFile(`${out}/licences.txt`, await licences(metafile));
} else {
  await build(app);
  await build({ ...options, entryPoints: { notebook: "src/notebook.tsx" }, format: "iife" });
  await copyFile("src/index.html", `${out}/index.html`);
}
