// What the tests of a site share: the site as a folder below a sub-path of a plain web server, and as one file.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after } from "node:test";
import { cleanUp, folder, launch, qkv, runs, trainModels } from "./harness.mjs";

export const page = process.env.QKV_SITE;
if (!page) throw new Error("set QKV_SITE to the folder that 'ninja qkv_site' made");
export const out = join(folder, "public", "a course", "page");
const types = { ".html": "text/html", ".txt": "text/plain", ".js": "text/javascript", ".css": "text/css" };

/** A web server as plain as they come: files, no special headers, no type for WebAssembly. */
export function staticServer(root) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://x").pathname);
    const file = join(root, normalize(path), path.endsWith("/") ? "index.html" : "");
    try {
      const body = readFileSync(file);
      response.writeHead(200, { "Content-Type": types[extname(file)] ?? "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}
export const address = (server) => `http://127.0.0.1:${server.address().port}/a%20course/page/`;

after(cleanUp);
trainModels();
export const named = ["reverse-small", "odd", "images-small", "text-small"];
export const said = qkv("site", "--page", page, "--out", out, ...named.map((name) => join(runs, name)));
const server = await staticServer(join(folder, "public"));
after(() => server.close());
export const url = address(server);
export const single = join(folder, "public", "a course.html");
export const saidOfSingle = qkv(
  "site",
  "--page",
  page,
  "--single",
  single,
  join(runs, "reverse-small"),
  join(runs, "odd"),
);
export const browser = await launch();

export const screens = [
  { viewport: { width: 1280, height: 800 } },
  { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
];

export const line = (run) => `.run[data-run='${run}']`;
export const settled = (page, run) =>
  page.waitForFunction((l) => document.querySelector(l) && !document.querySelector(`${l} em`), line(run), {
    timeout: 900000,
  });

/** What `qkv site` says when it refuses. */
export const refused = (...words) => {
  try {
    qkv("site", ...words);
  } catch (e) {
    return e.stderr;
  }
  return "";
};

/** Watches what a page asks for; pages made of blobs and data ask nobody. */
export function watched(page) {
  const asked = [];
  page.context().on("request", (r) => /^(blob|data):/.test(r.url()) || asked.push(r.url()));
  return asked;
}

/** Waits until these runs can be chosen: the first is there at once, the others follow. */
export const listed = (page, names) =>
  page.waitForFunction((all) => all.every((name) => document.querySelector(`#run option[value='${name}']`)), names);
