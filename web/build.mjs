// Bundles the page into dist/: index.html, app.js and app.css, nothing else and nothing from elsewhere; and notebook.js
// and notebook.css, which show a model's attention in a file of their own.

import { copyFile, mkdir } from "node:fs/promises";
import { build } from "esbuild";

const out = process.argv[2] ?? "dist";
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
};
await build({ ...options, entryPoints: { app: "src/main.tsx" }, format: "esm" });
await build({ ...options, entryPoints: { notebook: "src/notebook.tsx" }, format: "iife" });
await copyFile("src/index.html", `${out}/index.html`);
