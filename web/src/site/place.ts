// Where the site's files are: beside this page, or inside it when the page is one file.

/** Whether this page is a site: it has no server, and says so in its first line. */
export const isSite = document.documentElement.dataset.site !== undefined;
/** Whether everything is inside this file. */
export const isSingle = document.documentElement.dataset.site === "single";

/** What belongs to this site in the browser's storage is named after it. */
export const sitePath = isSingle ? location.pathname : new URL(".", location.href).pathname;

const element = (name: string) => document.querySelector(`script[data-file="${name}"]`);

/** Files inside this page, in base64, for a worker; none where they lie beside it. */
export function filesInside(wanted: (name: string) => boolean): Record<string, string> {
  const all = [...document.querySelectorAll<HTMLScriptElement>("script[data-file]")];
  const found = all.filter((e) => wanted(e.dataset.file ?? ""));
  return Object.fromEntries(found.map((e) => [e.dataset.file, e.textContent ?? ""]));
}

let workerAddress = "";
/** The script of the workers. */
export function workerScript(): string {
  if (!isSingle) return "worker.js";
  workerAddress ||= URL.createObjectURL(
    new Blob([element("worker.js")?.textContent ?? ""], { type: "text/javascript" }),
  );
  return workerAddress;
}

/** Asks the browser to keep this site for visits without a network, where browsers do that (https, localhost). */
export function keepForOffline(): void {
  if (isSite && !isSingle) void navigator.serviceWorker?.register("offline.js").catch(() => {});
}
