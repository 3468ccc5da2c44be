// The service worker of a site: its files come from the network, and from what was last loaded where there is none.

/** What this file uses of a service worker's scope, which the types of a page do not have. */
interface Scope {
  registration: { scope: string };
  clients: { claim(): Promise<void> };
  addEventListener(type: string, handle: (e: Lasting & Fetching) => void): void;
}
interface Lasting {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetching {
  request: Request;
  respondWith(response: Promise<Response>): void;
}
const scope = self as unknown as Scope;

const cacheName = `qkv ${new URL(scope.registration.scope).pathname}`;
const pageFiles = ["./", "index.html", "app.js", "app.css", "worker.js", "qkv.wasm", "site.json", "licences.txt"];

/** Everything a visit needs, runs too: the page was loaded before this worker could see it. */
async function keepAll(): Promise<void> {
  const kept = await caches.open(cacheName);
  await kept.addAll(pageFiles);
  const site = (await (await kept.match("site.json"))?.json()) as { runs: { file: string }[] };
  await kept.addAll(site.runs.map(({ file }) => file));
}

async function answer(request: Request): Promise<Response> {
  const kept = await caches.open(cacheName);
  try {
    const response = await fetch(request);
    if (response.ok) await kept.put(request, response.clone()).catch(() => {}); // the browser may be out of space
    return response;
  } catch (e) {
    const before = await kept.match(request, { ignoreSearch: true });
    if (before) return before;
    throw e;
  }
}

scope.addEventListener("install", (e) => e.waitUntil(keepAll()));
scope.addEventListener("activate", (e) => e.waitUntil(scope.clients.claim()));
scope.addEventListener("fetch", (e) => {
  if (e.request.method === "GET" && e.request.url.startsWith(scope.registration.scope))
    e.respondWith(answer(e.request));
});
