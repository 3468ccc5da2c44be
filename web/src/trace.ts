// The traced input: asked for once, its maps fetched as they are looked at.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { ApiError, type Site, type Trace, getArray, getJson, postJson, query } from "./api";
import type { Matrix } from "./matrix";
import { type State, state } from "./state";

export const trace = signal<Trace | null>(null);
export const failure = signal<{ message: string; field: string } | null>(null);
export const busy = signal(false);
let asked = "";

const post = ({ m, c, x, f }: State) => postJson<Trace>("/api/trace", { model: m, checkpoint: c, input: x, ...(f ? { beginning: f.split(",").map(Number) } : {}) });

/** Asks for what the state names, unless that is what is already there; `again` asks in any case. */
export async function ask(again = false): Promise<void> {
  const now = state.value;
  const { m, c, x, f } = now;
  const key = JSON.stringify([m, c, x, f]);
  if (!m || !x || (key === asked && !again)) return;
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

/** Runs a request about a trace; a server that has forgotten it (restarted, or many others since) is told again. */
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

export const siteName: Record<string, string> = {
  cross: "cross-attention: decoder → source",
  encoder: "encoder self-attention",
  decoder: "decoder self-attention",
  self: "self-attention",
  alignment: "alignment: mean of the cross-attention",
};

export interface MapRequest {
  site: Site;
  layer: number;
  head: number;
  what?: "weights" | "scores" | "rollout";
  rows?: [number, number];
}

const mostCells = 4 << 20;

const labels = (tokens: string[], from: number, n: number, pool: number) => Array.from({ length: n }, (_, i) => tokens[from + i * pool] ?? String(from + i * pool));

/** One head's map; above four million cells the server pools it. */
export async function fetchMap(t: Trace, r: MapRequest): Promise<Matrix> {
  const { site } = r;
  const [from, to] = r.rows ?? [0, site.queries];
  const pool = Math.max(1, Math.ceil(Math.sqrt(((to - from) * site.keys) / mostCells)));
  const what = r.what ?? "weights";
  const path = `/api/trace/${t.id}/map?${query({ site: site.id, layer: r.layer, head: r.head, what, rows: `${from}:${to}`, pool })}`;
  const { shape, values } = await remembered(t, () => getArray(path));
  const written = site.rows === "target";
  return {
    rows: shape[0], cols: shape[1], values, kind: what,
    rowLabels: labels(t.tokens[site.rows], from, shape[0], pool), colLabels: labels(t.tokens[site.columns], 0, shape[1], pool),
    rowTitle: written ? "written (queries)" : "queries", colTitle: site.columns === "target" ? "written before (keys)" : "read (keys)",
    ...(pool > 1 ? { pool } : {}),
  };
}

const cannot = (e: ApiError) => (failure.value = { message: e.message, field: "" });

/** The map of the choice, or null while it comes. The last one stays until the next is there, so nothing flickers. */
export function useMap(t: Trace | null, r: MapRequest | null): Matrix | null {
  const [held, hold] = useState<{ key: string; m: Matrix } | null>(null);
  const key = t && r ? JSON.stringify([t.id, r.site.id, r.layer, r.head, r.what, r.rows]) : "";
  useEffect(() => {
    let current = true;
    if (t && r) fetchMap(t, r).then((m) => current && hold({ key, m })).catch((e: ApiError) => current && cannot(e));
    return () => {
      current = false;
    };
  }, [key]);
  const same = held && t && r && JSON.parse(held.key)[1] === r.site.id;
  return held && (held.key === key || same) ? held.m : null;
}

/** Something else about a trace: thumbnails, figures. */
export function useAbout<T>(t: Trace, path: string, get: (path: string) => Promise<T>): T | null {
  const [held, hold] = useState<{ path: string; value: T } | null>(null);
  const full = `/api/trace/${t.id}/${path}`;
  useEffect(() => {
    let current = true;
    remembered(t, () => get(full)).then((value) => current && hold({ path: full, value })).catch((e: ApiError) => current && cannot(e));
    return () => {
      current = false;
    };
  }, [full]);
  return held?.path === full ? held.value : null;
}
export const json = <T,>(path: string) => getJson<T>(path);
