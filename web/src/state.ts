// What is looked at lives in the address, so that a link restores it.
import { signal } from "@preact/signals";

export interface State {
  view: "explore" | "train" | "lab";
  model: string; // the run whose model is looked at
  checkpoint: string; // "" = the one `qkv map` takes
  input: string;
  beginning: string; // ids of the tokens the output is made to begin with, comma separated
  site: string;
  layer: number;
  head: number;
  query: number; // the pinned one, -1 = none
  tab: "" | "map" | "lines" | "heads" | "steps" | "picture";
  scale: "abs" | "row" | "lift";
  what: "weights" | "scores" | "rollout";
  hiddenHeads: string; // heads left out of the lines, comma separated
  share: number; // per cent of a row's weight that the lines reach
  runs: string; // runs in the training view, comma separated; "-" = none
  metric: string; // of the training view
  axis: "step" | "epoch" | "seconds";
  halfLife: number; // of the smoothing, in points
  logarithmic: boolean;
  trainingStep: number; // checkpoint of the training view's map, -1 = the last
  experiment: string;
  settings: string; // of the experiment, as a query string
}

interface Field<T> {
  key: string; // in the address; links hold these, so they never change
  standard: T; // left out of the address
  choices?: readonly T[];
}

/** The only place that knows how the state is spelled in the address. The view comes before the question mark. */
const fields: { readonly [Name in keyof State]: Field<State[Name]> } = {
  view: { key: "", standard: "explore", choices: ["explore", "train", "lab"] },
  model: { key: "m", standard: "" },
  checkpoint: { key: "c", standard: "" },
  input: { key: "x", standard: "" },
  beginning: { key: "f", standard: "" },
  site: { key: "s", standard: "" },
  layer: { key: "l", standard: 0 },
  head: { key: "h", standard: 0 },
  query: { key: "q", standard: -1 },
  tab: { key: "tab", standard: "", choices: ["", "map", "lines", "heads", "steps", "picture"] },
  scale: { key: "scale", standard: "abs", choices: ["abs", "row", "lift"] },
  what: { key: "what", standard: "weights", choices: ["weights", "scores", "rollout"] },
  hiddenHeads: { key: "off", standard: "" },
  share: { key: "share", standard: 95 },
  runs: { key: "runs", standard: "" },
  metric: { key: "y", standard: "" },
  axis: { key: "axis", standard: "step", choices: ["step", "epoch", "seconds"] },
  halfLife: { key: "half", standard: 10 },
  logarithmic: { key: "log", standard: false },
  trainingStep: { key: "k", standard: -1 },
  experiment: { key: "e", standard: "" },
  settings: { key: "p", standard: "" },
};
const names = Object.keys(fields) as (keyof State)[];
const nameOf = new Map(names.map((name) => [fields[name].key, name]));
const standards = Object.fromEntries(names.map((name) => [name, fields[name].standard])) as unknown as State;

export const longestInput = 2000;

export const notice = signal("");

/** The value that `text` spells, or undefined where the field has no such value. */
function parseValue(name: keyof State, text: string): State[keyof State] | undefined {
  const { standard, choices } = fields[name] as Field<State[keyof State]>;
  if (typeof standard === "number") return /^-?\d{1,9}$/.test(text) ? Number(text) : undefined;
  if (typeof standard === "boolean") return text === "true" || text === "false" ? text === "true" : undefined;
  return !choices || choices.includes(text) ? text : undefined;
}

export function parseHash(hash: string): { state: State; wrong: string[] } {
  const [path, search] = hash.replace(/^#\/?/, "").split("?", 2);
  const state: State = { ...standards };
  const wrong: string[] = [];
  const put = (name: keyof State, text: string) => {
    const value = parseValue(name, text);
    if (value === undefined) wrong.push(name);
    else Object.assign(state, { [name]: value });
  };
  if (path) put("view", path);
  for (const [key, text] of new URLSearchParams(search ?? "")) {
    const name = key ? nameOf.get(key) : undefined;
    if (name) put(name, text);
  }
  return { state, wrong };
}

export function toHash(next: State): string {
  const params = new URLSearchParams();
  for (const name of names) {
    const standard = next[name] === fields[name].standard;
    const tooLong = name === "input" && next.input.length > longestInput;
    if (name !== "view" && !standard && !tooLong) params.set(fields[name].key, String(next[name]));
  }
  const search = params.toString();
  return `#/${next.view}${search ? `?${search}` : ""}`;
}

let address = ""; // the address that `state` stands for

function read(): State {
  address = location.hash;
  const { state, wrong } = parseHash(address);
  if (wrong.length) notice.value = `The link's ${wrong.join(", ")} could not be read; the usual value is shown.`;
  return state;
}

export const state = signal<State>(read());

/** The state the address names now; its event may still be on the way when a link has just been followed. */
export function current(): State {
  if (location.hash !== address) state.value = read();
  return state.value;
}

/** What a person would go back to: another view, and another run, input or experiment than the one shown first. */
function isStep(before: State, next: State): boolean {
  const replaced = (["model", "input", "experiment"] as const).some(
    (name) => before[name] !== "" && next[name] !== before[name],
  );
  return replaced || next.view !== before.view;
}

/** Changes the state and the address; a step of the history where one would go back to what was shown. */
export function update(change: Partial<State>): void {
  const before = current();
  const next = { ...before, ...change };
  if (next.model !== before.model || next.input !== before.input) next.beginning = change.beginning ?? "";
  state.value = next;
  if (next.input.length > longestInput && next.input !== before.input)
    notice.value = `The link leaves out the input: it is longer than ${longestInput} characters.`;
  const link = toHash(next);
  if (link !== location.hash) history[isStep(before, next) ? "pushState" : "replaceState"](null, "", link);
  address = location.hash;
}

addEventListener("popstate", current);
addEventListener("hashchange", current);
