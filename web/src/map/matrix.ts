// A map of weights: numbers, labels and what can be said about them.
import type { Scale } from "../colors";
import { shown } from "./tokens";

export interface Matrix {
  rows: number;
  cols: number;
  values: Float32Array; // row-major, NaN = masked
  rowLabels: string[];
  colLabels: string[];
  rowTitle?: string;
  colTitle?: string;
  pool?: number; // each cell is the largest of pool x pool
  kind?: "weights" | "scores" | "rollout";
  shared?: Ends; // where its colours are also those of another map
}

/** Where colours begin and end. */
export interface Ends {
  top: number; // of weights, see topWeight
  low: number;
  high: number;
}

export const cell = (m: Matrix, i: number, j: number): number => m.values[i * m.cols + j];
export const rowOf = (m: Matrix, i: number): Float32Array => m.values.subarray(i * m.cols, (i + 1) * m.cols);
const visible = (m: Matrix, i: number): number[] => Array.from(rowOf(m, i)).filter((v) => !Number.isNaN(v));

export function range(values: Float32Array): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 0];
}

/** The weight at which colours end: the largest of the rows that see at least half as many keys as any row does. A row
 *  that sees one key gives it a weight of 1, whatever was learned: by that, a long causal map would be white. */
export function topWeight({ rows, cols, values }: Pick<Matrix, "rows" | "cols" | "values">): number {
  const all = Array.from({ length: rows }, (_, i) => values.subarray(i * cols, (i + 1) * cols));
  const seen = all.map((row) => row.reduce((n, v) => n + (Number.isNaN(v) ? 0 : 1), 0));
  const most = seen.reduce((a, n) => Math.max(a, n), 0);
  return all.reduce((top, row, i) => (2 * seen[i] >= most ? Math.max(top, range(row)[1]) : top), 0);
}

/** Where the colours of a map begin and end: at its own numbers, unless it shares them. */
export function endsOf(m: Matrix): Ends {
  if (m.shared) return m.shared;
  const [low, high] = range(m.values);
  return { top: topWeight(m), low, high };
}

/** One scale for several maps: the widest of theirs. */
export function sharedEnds(maps: Matrix[]): Ends {
  const all = maps.map((m) => endsOf({ ...m, shared: undefined }));
  return {
    top: Math.max(...all.map((e) => e.top)),
    low: Math.min(...all.map((e) => e.low)),
    high: Math.max(...all.map((e) => e.high)),
  };
}

/** Doublings of an even weight at which colours relative to it end: as many as the largest weight has, 1 to 6. */
export function liftReach(m: Matrix): number {
  let most = 1;
  for (let i = 0; i < m.rows; i++) {
    const row = visible(m, i);
    most = row.reduce((a, v) => Math.max(a, v * row.length), most);
  }
  return Math.max(1, Math.min(6, Math.ceil(Math.log2(most))));
}

/** Position on the colour map of the weights of one row; NaN stays NaN. */
function rowShade(row: Float32Array, scale: "row" | "lift", reach: number): (v: number) => number {
  let top = 0;
  let seen = 0;
  for (const v of row) {
    if (v > top) top = v;
    if (!Number.isNaN(v)) seen++;
  }
  if (scale === "row") return (v) => (top > 0 ? v / top : v);
  return (v) => (v > 0 ? Math.max(0, Math.min(1, 0.5 + Math.log2(v * seen) / (2 * reach))) : v);
}

/** Position on the colour map when all cells share one scale; NaN stays NaN. */
function wholeShade(m: Matrix, scale: "largest" | "abs" | "auto" | "centered"): (v: number) => number {
  if (scale === "abs") return (v) => v;
  const { top, low, high } = endsOf(m);
  if (scale === "largest") return (v) => (top > 0 ? v / top : v);
  const reach = Math.max(Math.abs(low), Math.abs(high));
  if (scale === "centered") return (v) => 0.5 + (reach > 0 ? v / (2 * reach) : v * 0);
  return (v) => (high > low ? (v - low) / (high - low) : v * 0);
}

/** Position of every cell on the colour map, 0 … 1; NaN where masked. */
export function shades(m: Matrix, scale: Scale): Float32Array {
  const out = new Float32Array(m.values.length);
  const whole = scale === "row" || scale === "lift" ? null : wholeShade(m, scale);
  const reach = scale === "lift" ? liftReach(m) : 0;
  for (let i = 0; i < m.rows; i++) {
    const row = rowOf(m, i);
    out.set(row.map(whole ?? rowShade(row, scale as "row" | "lift", reach)), i * m.cols);
  }
  return out;
}

export function rowMaximum(m: Matrix, i: number): number {
  let best = 0;
  for (let j = 1; j < m.cols; j++) if (!(cell(m, i, j) <= cell(m, i, best)) && !Number.isNaN(cell(m, i, j))) best = j;
  return best;
}

/** The keys a row sees, those with the largest weights first. */
export const keysByWeight = (m: Matrix, i: number): number[] =>
  Array.from({ length: m.cols }, (_, j) => j)
    .filter((j) => !Number.isNaN(cell(m, i, j)))
    .sort((a, b) => cell(m, i, b) - cell(m, i, a));

/** A smaller map for looking from afar: each cell the largest of k x k. */
export function poolMatrix(m: Matrix, k: number): Matrix {
  const rows = Math.ceil(m.rows / k);
  const cols = Math.ceil(m.cols / k);
  const values = new Float32Array(rows * cols).fill(NaN);
  for (let i = 0; i < m.rows; i++) {
    for (let j = 0; j < m.cols; j++) {
      const v = m.values[i * m.cols + j];
      const to = Math.floor(i / k) * cols + Math.floor(j / k);
      if (!Number.isNaN(v) && !(values[to] >= v)) values[to] = v;
    }
  }
  const every = (labels: string[]) => labels.filter((_, i) => i % k === 0);
  return {
    ...m,
    rows,
    cols,
    values,
    rowLabels: every(m.rowLabels),
    colLabels: every(m.colLabels),
    pool: (m.pool ?? 1) * k,
  };
}

/** What the cursor reads out. */
export function describeCell(m: Matrix, i: number, j: number): string {
  const v = cell(m, i, j);
  const k = m.pool ?? 1;
  const place = `“${shown(m.rowLabels[i])}” (${i * k}) → “${shown(m.colLabels[j])}” (${j * k})`;
  if (Number.isNaN(v)) return `${place}: masked`;
  if (k > 1) return `${place}: ${v.toFixed(4)}, the largest of ${k} × ${k}`;
  if (m.kind === "scores") return `${place}: score ${v.toFixed(4)}`;
  const row = visible(m, i);
  const rank = row.filter((x) => x > v).length + 1;
  const lift = v > 0 ? `, ${(v * row.length).toFixed(2)} × uniform` : "";
  return `${place}: ${v.toFixed(4)}, rank ${rank} of ${row.length}${lift}`;
}

/** "61% of an even spread": an entropy as a share of the largest possible. */
export const spread = (share: number): string => `${(100 * share).toFixed(0)}% of an even spread`;

/** Entropy of a row's weights as a share of the largest possible. */
export function rowEntropy(m: Matrix, i: number): number {
  const row = visible(m, i);
  if (row.length < 2) return 0;
  return row.reduce((a, p) => a - (p > 0 ? p * Math.log(p) : 0), 0) / Math.log(row.length);
}

/** Means over the rows that see a key, and the number of masked cells. */
function summary(m: Matrix): { rows: number; largest: number; entropy: number; masked: number } {
  const sum = { rows: 0, largest: 0, entropy: 0, masked: 0 };
  for (let i = 0; i < m.rows; i++) {
    const row = visible(m, i);
    sum.masked += m.cols - row.length;
    if (!(row.reduce((a, v) => a + v, 0) > 0)) continue;
    sum.rows++;
    sum.largest += row.reduce((a, v) => Math.max(a, v), 0);
    sum.entropy += rowEntropy(m, i);
  }
  return { ...sum, largest: sum.largest / sum.rows, entropy: sum.entropy / sum.rows };
}

const scoresMeaning =
  "A score says how well a key fits a query, before a row of scores becomes a row of weights: only differences within a row count.";

export const rolloutMeaning =
  "A rollout multiplies the layers: half of each layer's mean attention, half of what passes by it.";

const counted = (n: number): string => n.toLocaleString("en");

/** One sentence computed from the map. */
export function caption(m: Matrix): string {
  if (m.kind === "scores") {
    const [low, high] = range(m.values).map((v) => v.toFixed(2));
    return `${scoresMeaning} These lie between ${low} and ${high}.`;
  }
  const { rows, largest, entropy, masked } = summary(m);
  if (!rows) return "No row sees a key.";
  if (m.pool && m.pool > 1) return `Seen from afar. Each cell is the largest of ${m.pool} × ${m.pool} weights.`;
  const hidden = masked ? `; ${counted(masked)} of ${counted(m.rows * m.cols)} cells are masked` : "";
  const meaning = m.kind === "rollout" ? `${rolloutMeaning} ` : "";
  return `${meaning}A row's largest weight is ${largest.toFixed(2)} on average, its entropy ${spread(entropy)}${hidden}.`;
}
