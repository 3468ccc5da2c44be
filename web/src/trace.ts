// The traced input: asked for once, its maps fetched as they are looked at.
import { type Signal, signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { type ApiError, getArray, postJson, query, type Site, type Trace } from "./api";
import { useAnswer } from "./hooks";
import type { Matrix } from "./map/matrix";
import { runs } from "./runs";
import { type State, state } from "./state";

export interface Failure {
  message: string;
  field: string;
}

/** An input run through a model: the answer, or why there is none. */
interface Asked {
  trace: Signal<Trace | null>;
  failure: Signal<Failure | null>;
  busy: Signal<boolean>;
}
const nothing = (): Asked => ({ trace: signal(null), failure: signal(null), busy: signal(false) });

const first = nothing();
/** The run beside the first one, on the same input. */
export const beside = nothing();
export const { trace, failure, busy } = first;

interface Request {
  model: string;
  input: string;
  [more: string]: unknown;
}

/** What is asked of the server, by the id of its answer: a server that has forgotten a trace is asked again. */
const requests = new Map<string, Request>();

/** What the state asks for, of the run beside the first one where that is meant. */
function requestOf(s: State, other = false): Request | null {
  const model = other ? s.other : s.model;
  if (!model || !s.input) return null;
  const { input, checkpoint, temperature, topK, topP, seed, length, beginning } = s;
  const taskOf = (id: string) => runs.value.find((r) => r.id === id)?.task;
  // How tokens are drawn is said to the other run only where it is of the same kind; the beginning is the first one's.
  const drawn = temperature > 0 ? { sample: { temperature, top_k: topK, top_p: topP, seed } } : {};
  const writing = other && taskOf(model) !== taskOf(s.model) ? {} : { ...drawn, ...(length ? { length } : {}) };
  if (other) return { model, input, ...writing };
  const begun = beginning ? { beginning: beginning.split(",").map(Number) } : {};
  return { model, checkpoint, input, ...writing, ...begun };
}

async function post(body: Request): Promise<Trace> {
  const answer = { ...(await postJson<Trace>("/api/trace", body)), model: body.model, input: body.input };
  if (requests.size > 500) requests.clear();
  requests.set(answer.id, body);
  return answer;
}

/** Asks; an answer that comes after the next question is dropped. Returns a function of what and whether again. */
function asker({ trace, failure, busy }: Asked) {
  let asked = "";
  return async (body: Request | null, again = false): Promise<void> => {
    const key = JSON.stringify(body);
    if (!body || (key === asked && !again)) return;
    asked = key;
    busy.value = true;
    try {
      const answer = await post(body);
      if (key !== asked) return;
      trace.value = answer;
      failure.value = null;
    } catch (e) {
      if (key !== asked) return;
      asked = "";
      const { message, field } = e as ApiError;
      failure.value = { message, field: field ?? "" };
    } finally {
      if (key === asked || asked === "") busy.value = false;
    }
  };
}
const askFirst = asker(first);
const askBeside = asker(beside);

/** Asks for what the state names, unless that is what is already there; `again` asks in any case. */
export async function ask(again = false): Promise<void> {
  const { other, input } = state.value;
  if (!other || !input) beside.trace.value = beside.failure.value = null;
  await Promise.all([askFirst(requestOf(state.value), again), askBeside(requestOf(state.value, true), again)]);
}

/** Runs a request about a trace; a server that has forgotten it (restarted, or many others since) gets the input again. */
async function remembered<T>(t: Trace, what: () => Promise<T>): Promise<T> {
  try {
    return await what();
  } catch (e) {
    const body = requests.get(t.id);
    if ((e as ApiError).status !== 404 || !body) throw e;
    await post(body);
    return what();
  }
}

const siteNames: Record<string, string> = {
  cross: "cross-attention: decoder → source",
  encoder: "encoder self-attention",
  decoder: "decoder self-attention",
  self: "self-attention",
  alignment: "alignment: mean of the cross-attention of the upper layers",
};
export const siteName = (site: Site): string => siteNames[site.id] ?? site.id;

/** Whether a site's weights are a mean over layers and heads, so that it has none of its own. */
export const isMean = (site: Site): boolean => site.id === "alignment";

/** Whether the layers multiplied are looked at: a way without heads. */
export const isRollout = (tab: State["tab"], what: State["what"]): boolean =>
  what === "rollout" && (tab === "map" || tab === "picture");

/** "cross-attention: decoder → source, layer 0, head 1", as far as the site has layers and heads. */
export function mapName(site: Site, what: State["what"] = "weights"): string {
  const { layer, head } = chosenHead(site);
  if (isMean(site)) return siteName(site);
  if (what === "rollout") return `${siteName(site)}, rollout to layer ${layer}`;
  return `${siteName(site)}, layer ${layer}, head ${head}${what === "scores" ? ", scores" : ""}`;
}

/** What a saved page says about where its picture came from. */
export const aboutTrace = (t: Trace): [string, string][] => [
  ["Run", `${t.model}, weights of ${/^\d/.test(t.checkpoint) ? `step ${t.checkpoint}` : t.checkpoint}`],
  ["Input", t.picture ? "a picture" : t.input],
  ["Output", t.output],
];

/** The layer and head the state names, as far as the site has them. */
export const chosenHead = (site: Site): { layer: number; head: number } => ({
  layer: Math.min(state.value.layer, site.layers - 1),
  head: Math.min(state.value.head, site.heads - 1),
});

export interface MapRequest {
  site: Site;
  layer: number;
  head: number;
  what?: State["what"];
  rows?: [number, number];
}

const mostCells = 4 << 20;

/** `n` labels, every `pool`-th token from number `from` on; a number where there is no token. */
const labels = (tokens: string[], from: number, n: number, pool: number) =>
  Array.from({ length: n }, (_, i) => tokens[from + i * pool] ?? String(from + i * pool));

/** The labels of all of a site's queries and keys. */
export const siteLabels = (t: Trace, site: Site) => ({
  rows: labels(t.tokens[site.rows], 0, site.queries, 1),
  keys: labels(t.tokens[site.columns], 0, site.keys, 1),
});

/** One head's map; above four million cells the server pools it. */
export async function fetchMap(t: Trace, { site, layer, head, what = "weights", rows }: MapRequest): Promise<Matrix> {
  const [from, to] = rows ?? [0, site.queries];
  const pool = Math.max(1, Math.ceil(Math.sqrt(((to - from) * site.keys) / mostCells)));
  const wanted = query({ site: site.id, layer, head, what, rows: `${from}:${to}`, pool });
  const { shape, values } = await remembered(t, () => getArray(`/api/trace/${t.id}/map?${wanted}`));
  return {
    rows: shape[0],
    cols: shape[1],
    values,
    kind: what,
    rowLabels: labels(t.tokens[site.rows], from, shape[0], pool),
    colLabels: labels(t.tokens[site.columns], 0, shape[1], pool),
    rowTitle: site.rows === "target" ? "written (queries)" : "queries",
    colTitle: site.columns === "target" ? "written before (keys)" : "read (keys)",
    ...(pool > 1 ? { pool } : {}),
  };
}

export function cannot(e: ApiError): void {
  failure.value = { message: e.message, field: "" };
}

/** The map of the choice, or null while it comes. The last one stays until the next is there, so nothing flickers. */
export function useMap(t: Trace, r: MapRequest): Matrix | null {
  const [held, hold] = useState<{ key: string; site: string; m: Matrix } | null>(null);
  const key = JSON.stringify([t.id, r.site.id, r.layer, r.head, r.what, r.rows]);
  useAnswer(
    () => fetchMap(t, r),
    [key],
    (m) => hold({ key, site: r.site.id, m }),
    cannot,
  );
  return held && held.site === r.site.id ? held.m : null;
}

/** Something else about a trace: thumbnails, figures. */
export function useAbout<T>(t: Trace, path: string, get: (path: string) => Promise<T>): T | null {
  const [held, hold] = useState<{ path: string; value: T } | null>(null);
  const full = `/api/trace/${t.id}/${path}`;
  useAnswer(
    () => remembered(t, () => get(full)),
    [full],
    (value) => hold({ path: full, value }),
    cannot,
  );
  return held?.path === full ? held.value : null;
}
