// What is looked at lives in the address, so that a link restores it.
import { signal } from "@preact/signals";

export interface State {
  view: "explore" | "train" | "lab";
  m: string; // run
  c: string; // checkpoint, "" = the one `qkv map` takes
  x: string; // input
  f: string; // ids of the tokens the output is made to begin with, comma separated
  s: string; // site
  l: number; // layer
  h: number; // head
  q: number; // pinned query, -1 = none
  tab: "" | "map" | "lines" | "heads" | "steps" | "picture";
  scale: "abs" | "row" | "lift";
  what: "weights" | "scores" | "rollout";
  off: string; // heads left out of the lines, comma separated
  share: number; // per cent of a row's weight that the lines reach
  runs: string; // runs in the training view, comma separated; "-" = none
  y: string; // metric of the training view
  axis: "step" | "epoch" | "seconds";
  half: number; // half-life of the smoothing, in points
  log: boolean;
  k: number; // checkpoint of the training view's map, -1 = the last
  e: string; // experiment
  p: string; // its settings, as a query string
}

const defaults: State = {
  view: "explore", m: "", c: "", x: "", f: "", s: "", l: 0, h: 0, q: -1, tab: "", scale: "abs", what: "weights", off: "", share: 95,
  runs: "", y: "", axis: "step", half: 10, log: false, k: -1, e: "", p: "",
};
const choices: Partial<Record<keyof State, readonly string[]>> = {
  view: ["explore", "train", "lab"],
  tab: ["", "map", "lines", "heads", "steps", "picture"],
  scale: ["abs", "row", "lift"],
  what: ["weights", "scores", "rollout"],
  axis: ["step", "epoch", "seconds"],
  log: ["true", "false"],
};
export const longestInput = 2000;

export const notice = signal("");

export function parseHash(hash: string): { state: State; wrong: string[] } {
  const [path, search] = hash.replace(/^#\/?/, "").split("?", 2);
  const state: State = { ...defaults };
  const wrong: string[] = [];
  const put = (key: keyof State, text: string) => {
    const kind = typeof defaults[key];
    const allowed = choices[key];
    if ((allowed && !allowed.includes(text)) || (kind === "number" && !/^-?\d{1,9}$/.test(text))) wrong.push(key);
    else Object.assign(state, { [key]: kind === "number" ? Number(text) : kind === "boolean" ? text === "true" : text });
  };
  if (path) put("view", path);
  for (const [key, value] of new URLSearchParams(search ?? "")) {
    if (key in defaults && key !== "view") put(key as keyof State, value);
  }
  return { state, wrong };
}

let address = ""; // the address that `state` stands for

function read(): State {
  address = location.hash;
  const { state, wrong } = parseHash(address);
  if (wrong.length) notice.value = `The link's ${wrong.join(", ")} could not be read; the usual value is shown.`;
  return state;
}

export const state = signal<State>(read());

export function toHash(next: State): string {
  const params = new URLSearchParams();
  for (const key of Object.keys(defaults) as (keyof State)[]) {
    if (key === "view" || next[key] === defaults[key] || (key === "x" && next.x.length > longestInput)) continue;
    params.set(key, String(next[key]));
  }
  const search = params.toString();
  return `#/${next.view}${search ? `?${search}` : ""}`;
}

/** The state the address names now; its event may still be on the way when a link has just been followed. */
export function current(): State {
  if (location.hash !== address) state.value = read();
  return state.value;
}

/** Changes the state; what a person would go back to (view, run, input) becomes a step of the history. */
export function update(change: Partial<State>): void {
  const before = current();
  const next = { ...before, ...change };
  if (next.m !== before.m || next.x !== before.x) next.f = change.f ?? "";
  state.value = next;
  if (next.x.length > longestInput && next.x !== before.x) notice.value = `The link leaves out the input: it is longer than ${longestInput} characters.`;
  const step = next.view !== before.view || (before.m !== "" && next.m !== before.m) || (before.x !== "" && next.x !== before.x) || (before.e !== "" && next.e !== before.e);
  const link = toHash(next);
  if (link !== location.hash) history[step ? "pushState" : "replaceState"](null, "", link);
  address = location.hash;
}

addEventListener("popstate", current);
addEventListener("hashchange", current);
