// What is looked at lives in the address, so that a link restores it.
import { signal } from "@preact/signals";

export interface State {
  view: "explore" | "train" | "lab";
  model: string; // the run whose model is looked at
  checkpoint: string; // "" = the one `qkv map` takes
  input: string;
  beginning: string; // ids of the tokens the output is made to begin with, comma separated
  temperature: number; // of drawn tokens; 0 = always the likeliest
  topK: number; // tokens drawn from, 0 = all
  topP: number; // share of the probability drawn from
  seed: number; // of drawn tokens
  length: number; // tokens to write, 0 = as many as usual
  other: string; // the run beside the first one, on the same input
  site: string;
  layer: number;
  head: number;
  query: number; // the pinned one, -1 = none
  key: number; // the pinned one, -1 = the one with the most weight
  tab: "" | "map" | "lines" | "cell" | "heads" | "steps" | "picture";
  scale: "largest" | "abs" | "row" | "lift";
  what: "weights" | "scores" | "rollout";
  hiddenHeads: string; // heads left out of the lines, comma separated; "" = all but the chosen one, "none"
  share: number; // per cent of a row's weight that the lines reach; -n = the n strongest keys
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
  decimal?: boolean; // a number that need not be whole
}

/** The only place that knows how the state is spelled in the address. The view comes before the question mark. */
const fields: { readonly [Name in keyof State]: Field<State[Name]> } = {
  view: { key: "", standard: "explore", choices: ["explore", "train", "lab"] },
  model: { key: "m", standard: "" },
  checkpoint: { key: "c", standard: "" },
  input: { key: "x", standard: "" },
  beginning: { key: "f", standard: "" },
  temperature: { key: "temp", standard: 0, decimal: true },
  topK: { key: "topk", standard: 0 },
  topP: { key: "topp", standard: 1, decimal: true },
  seed: { key: "seed", standard: 1 },
  length: { key: "len", standard: 0 },
  other: { key: "m2", standard: "" },
  site: { key: "s", standard: "" },
  layer: { key: "l", standard: 0 },
  head: { key: "h", standard: 0 },
  query: { key: "q", standard: -1 },
  key: { key: "j", standard: -1 },
  tab: { key: "tab", standard: "", choices: ["", "map", "lines", "cell", "heads", "steps", "picture"] },
  scale: { key: "scale", standard: "largest", choices: ["largest", "abs", "row", "lift"] },
  what: { key: "what", standard: "weights", choices: ["weights", "scores", "rollout"] },
  hiddenHeads: { key: "off", standard: "" },
  share: { key: "share", standard: -3 },
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
  const { standard, choices, decimal } = fields[name] as Field<State[keyof State]>;
  const spelling = decimal ? /^\d{1,6}(\.\d{1,6})?$/ : /^-?\d{1,9}$/;
  if (typeof standard === "number") return spelling.test(text) ? Number(text) : undefined;
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
  if (next.query !== before.query && change.key === undefined) next.key = -1;
  state.value = next;
  if (next.input.length > longestInput && next.input !== before.input)
    notice.value = `The link leaves out the input: it is longer than ${longestInput} characters.`;
  const link = toHash(next);
  if (link !== location.hash) history[isStep(before, next) ? "pushState" : "replaceState"](null, "", link);
  address = location.hash;
}

addEventListener("popstate", current);
addEventListener("hashchange", current);
