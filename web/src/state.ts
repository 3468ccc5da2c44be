// What is looked at lives in the address, so that a link restores it.
import { signal } from "@preact/signals";

export interface State {
  view: "explore" | "train" | "lab";
  m: string; // run
  c: string; // checkpoint, "" = newest
  x: string; // input
  s: string; // site
  l: number; // layer
  h: number; // head
  q: number; // pinned query, -1 = none
  tab: "map" | "lines" | "heads";
  scale: "abs" | "row" | "lift";
  what: "weights" | "scores";
  runs: string; // runs in the training view, comma separated
  y: string; // metric of the training view
  log: boolean;
  e: string; // experiment
  p: string; // its settings, as a query string
}

const defaults: State = {
  view: "explore", m: "", c: "", x: "", s: "", l: 0, h: 0, q: -1, tab: "map", scale: "abs", what: "weights",
  runs: "", y: "", log: false, e: "", p: "",
};
const choices: Partial<Record<keyof State, readonly string[]>> = {
  view: ["explore", "train", "lab"],
  tab: ["map", "lines", "heads"],
  scale: ["abs", "row", "lift"],
  what: ["weights", "scores"],
};
const longestInput = 2000;

export const notice = signal("");

function read(): State {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const state: State = { ...defaults };
  const wrong: string[] = [];
  const put = (key: keyof State, text: string) => {
    const kind = typeof defaults[key];
    const allowed = choices[key];
    if (allowed && !allowed.includes(text)) wrong.push(key);
    else if (kind === "number" && !/^-?\d+$/.test(text)) wrong.push(key);
    else Object.assign(state, { [key]: kind === "number" ? Number(text) : kind === "boolean" ? text === "true" : text });
  };
  if (path) put("view", path);
  for (const [key, value] of new URLSearchParams(search ?? "")) {
    if (key in defaults && key !== "view") put(key as keyof State, value);
  }
  if (wrong.length) notice.value = `The link's ${wrong.join(", ")} could not be read; the usual value is shown.`;
  return state;
}

export const state = signal<State>(read());

function write(next: State): string {
  const params = new URLSearchParams();
  for (const key of Object.keys(defaults) as (keyof State)[]) {
    if (key === "view" || next[key] === defaults[key]) continue;
    if (key === "x" && next.x.length > longestInput) {
      notice.value = `The link leaves out the input: it is longer than ${longestInput} characters.`;
      continue;
    }
    params.set(key, String(next[key]));
  }
  const search = params.toString();
  return `#/${next.view}${search ? `?${search}` : ""}`;
}

/** Changes the state; what a person would go back to (view, run, input) becomes a step of the history. */
export function update(change: Partial<State>): void {
  const before = state.value;
  const next = { ...before, ...change };
  state.value = next;
  const step = next.view !== before.view || next.m !== before.m || next.x !== before.x || next.e !== before.e;
  const address = write(next);
  if (address !== location.hash) history[step ? "pushState" : "replaceState"](null, "", address);
}

addEventListener("popstate", () => (state.value = read()));
addEventListener("hashchange", () => (state.value = read()));
