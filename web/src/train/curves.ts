// Curves of trainings: records to points, and an average that later points never change.
import type { MetricRecord } from "../api";

export interface Point {
  x: number;
  step: number;
  value: number;
}

/** Nested objects ("validation": {"loss": …}) count as "validation loss". */
export function flat(record: MetricRecord): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(record)) {
    if (value && typeof value === "object") for (const [k, v] of Object.entries(value)) out[`${key} ${k}`] = v;
    else out[key] = value;
  }
  return out;
}

export type Axis = "step" | "epoch" | "seconds";
const skipped = new Set(["step", "epoch", "seconds", "cpu_seconds"]);

/** A figure that is not finite comes as null or as a word ("Infinity", "NaN") and has no place on an axis. */
function figure(value: unknown): number | undefined {
  if (value === null || value === "Infinity" || value === "-Infinity" || value === "NaN") return NaN;
  return typeof value === "number" ? value : undefined;
}

export function metricsOf(records: MetricRecord[]): string[] {
  const names = new Set<string>();
  for (const r of records)
    for (const [k, v] of Object.entries(flat(r))) if (figure(v) !== undefined && !skipped.has(k)) names.add(k);
  return [...names];
}

/** Values of one metric; x on the axis asked for is carried forward from the last record that has it. NaN stays. */
export function points(records: MetricRecord[], metric: string, axis: Axis = "step"): Point[] {
  const out: Point[] = [];
  let x = 0;
  for (const r of records) {
    const f = flat(r);
    if (typeof f[axis] === "number") x = f[axis] as number;
    else if (axis !== "step") continue;
    if (!(metric in f) || typeof r.step !== "number") continue;
    const value = figure(f[metric]);
    if (value !== undefined) out.push({ x, step: r.step, value });
  }
  return out;
}

/** Average with a half-life in points, corrected for its start; not-a-number passes through without touching it. */
export function smooth(values: Point[], halfLife: number): Point[] {
  const keep = halfLife > 0 ? 0.5 ** (1 / halfLife) : 0;
  let sum = 0;
  let weight = 0;
  return values.map((p) => {
    if (!Number.isFinite(p.value)) return p;
    sum = keep * sum + (1 - keep) * p.value;
    weight = keep * weight + (1 - keep);
    return { ...p, value: sum / weight };
  });
}

/** At most two points per pixel column, its lowest and highest, so that a long training stays light. */
export function thin(values: Point[], columns: number): Point[] {
  if (values.length <= 2 * columns) return values;
  const low = values[0].x;
  const wide = (values[values.length - 1].x - low) / columns || 1;
  const out: Point[] = [];
  for (let i = 0; i < values.length; ) {
    const column = Math.floor((values[i].x - low) / wide);
    let least = values[i];
    let most = values[i];
    for (; i < values.length && Math.floor((values[i].x - low) / wide) === column; i++) {
      if (values[i].value < least.value) least = values[i];
      if (values[i].value > most.value) most = values[i];
    }
    out.push(...(least.x <= most.x ? [least, most] : [most, least]).slice(0, least === most ? 1 : 2));
  }
  return out;
}

/** The best value of a metric: the smallest loss or perplexity, the largest of the others. */
export const lowerIsBetter = (metric: string): boolean => /loss|perplexity|seconds|norm|lr/.test(metric);
export function best(values: Point[], metric: string): Point | undefined {
  const good = values.filter((p) => Number.isFinite(p.value));
  return good.reduce<Point | undefined>(
    (a, p) => (!a || (lowerIsBetter(metric) ? p.value < a.value : p.value > a.value) ? p : a),
    undefined,
  );
}
