// The traced input: asked for once, its maps fetched as they are looked at.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { type ApiError, getArray, postJson, query, type Site, type Trace } from "./api";
import { useAnswer } from "./hooks";
import type { Matrix } from "./map/matrix";
import { type State, state } from "./state";

export const trace = signal<Trace | null>(null);
export const failure = signal<{ message: string; field: string } | null>(null);
export const busy = signal(false);
let asked = "";

const post = ({ model, checkpoint, input, beginning }: State) => {
  const begun = beginning ? { beginning: beginning.split(",").map(Number) } : {};
  return postJson<Trace>("/api/trace", { model, checkpoint, input, ...begun });
};

/** Asks for what the state names, unless that is what is already there; `again` asks in any case. */
export async function ask(again = false): Promise<void> {
  const now = state.value;
  const key = JSON.stringify([now.model, now.checkpoint, now.input, now.beginning]);
  if (!now.model || !now.input || (key === asked && !again)) return;
  asked = key;
  busy.value = true;
  try {
    const answer = await post(now);
    if (key !== asked) return;
    trace.value = answer;
    failure.value = null;
  } catch (e) {
    if (key !== asked) return;
    asked = "";
    const error = e as ApiError;
    failure.value = { message: error.message, field: error.field ?? "" };
  } finally {
    if (key === asked || asked === "") busy.value = false;
  }
}

/** Runs a request about a trace; a server that has forgotten it (restarted, or many others since) gets the input again. */
async function remembered<T>(t: Trace, what: () => Promise<T>): Promise<T> {
  try {
    return await what();
  } catch (e) {
    const now = state.value;
    if ((e as ApiError).status !== 404 || trace.value?.id !== t.id) throw e;
    await post(now);
    return what();
  }
}

const siteNames: Record<string, string> = {
  cross: "cross-attention: decoder → source",
  encoder: "encoder self-attention",
  decoder: "decoder self-attention",
  self: "self-attention",
  alignment: "alignment: mean of the cross-attention",
};
export const siteName = (site: Site): string => siteNames[site.id] ?? site.id;

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
