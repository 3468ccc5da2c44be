// A map of weights: numbers, labels and what can be said about them.
import type { Scale } from "./colors";

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
}

export const cell = (m: Matrix, i: number, j: number): number => m.values[i * m.cols + j];
const rowOf = (m: Matrix, i: number): Float32Array => m.values.subarray(i * m.cols, (i + 1) * m.cols);
const visible = (m: Matrix, i: number): number[] => Array.from(rowOf(m, i)).filter((v) => !Number.isNaN(v));

export function range(values: Float32Array): [number, number] {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 0];
}

/** Position of every cell on the colour map, 0 … 1; NaN where masked. */
export function shades(m: Matrix, scale: Scale): Float32Array {
  const out = new Float32Array(m.values.length);
  const [low, high] = scale === "auto" || scale === "centered" ? range(m.values) : [0, 1];
  const reach = Math.max(Math.abs(low), Math.abs(high));
  for (let i = 0; i < m.rows; i++) {
    const row = rowOf(m, i);
    let top = 0, seen = 0;
    for (const v of row) {
      if (v > top) top = v;
      if (!Number.isNaN(v)) seen++;
    }
    for (let j = 0; j < m.cols; j++) {
      const v = row[j], k = i * m.cols + j;
      if (scale === "abs") out[k] = v;
      else if (scale === "row") out[k] = top > 0 ? v / top : v;
      else if (scale === "lift") out[k] = v > 0 ? Math.max(0, Math.min(1, 0.5 + Math.log2(v * seen) / 12)) : v === 0 ? 0 : NaN;
      else if (scale === "centered") out[k] = reach > 0 ? 0.5 + v / (2 * reach) : 0.5 + v * 0;
      else out[k] = high > low ? (v - low) / (high - low) : v * 0;
    }
  }
  return out;
}

export function rowMaximum(m: Matrix, i: number): number {
  let best = 0;
  for (let j = 1; j < m.cols; j++) if (!(cell(m, i, j) <= cell(m, i, best)) && !Number.isNaN(cell(m, i, j))) best = j;
  return best;
}

/** A smaller map for looking from afar: each cell the largest of k x k. */
export function poolMatrix(m: Matrix, k: number): Matrix {
  const rows = Math.ceil(m.rows / k), cols = Math.ceil(m.cols / k);
  const values = new Float32Array(rows * cols).fill(NaN);
  for (let i = 0; i < m.rows; i++) {
    for (let j = 0; j < m.cols; j++) {
      const v = m.values[i * m.cols + j], to = Math.floor(i / k) * cols + Math.floor(j / k);
      if (!Number.isNaN(v) && !(values[to] >= v)) values[to] = v;
    }
  }
  const every = (labels: string[]) => labels.filter((_, i) => i % k === 0);
  return { ...m, rows, cols, values, rowLabels: every(m.rowLabels), colLabels: every(m.colLabels), pool: (m.pool ?? 1) * k };
}

/** What the cursor reads out. */
export function describeCell(m: Matrix, i: number, j: number): string {
  const v = cell(m, i, j), k = m.pool ?? 1;
  const place = `“${shown(m.rowLabels[i])}” (${i * k}) → “${shown(m.colLabels[j])}” (${j * k})`;
  if (Number.isNaN(v)) return `${place}: masked`;
  if (k > 1) return `${place}: ${v.toFixed(4)}, the largest of ${k} × ${k}`;
  if (m.kind === "scores") return `${place}: score ${v.toFixed(4)}`;
  const row = visible(m, i);
  const rank = row.filter((x) => x > v).length + 1;
  const lift = v > 0 ? `, ${(v * row.length).toFixed(2)} × even` : "";
  return `${place}: ${v.toFixed(4)}, rank ${rank} of ${row.length}${lift}`;
}

/** Entropy of a row's weights as a share of the largest possible. */
export function rowEntropy(m: Matrix, i: number): number {
  const row = visible(m, i);
  if (row.length < 2) return 0;
  return row.reduce((a, p) => a - (p > 0 ? p * Math.log(p) : 0), 0) / Math.log(row.length);
}

/** One sentence computed from the map. */
export function caption(m: Matrix): string {
  if (m.kind === "scores") {
    const [low, high] = range(m.values);
    return `Scores before they become weights lie between ${low.toFixed(2)} and ${high.toFixed(2)}; only differences within a row count.`;
  }
  let top = 0, entropy = 0, rows = 0, masked = 0;
  for (let i = 0; i < m.rows; i++) {
    let most = 0, sum = 0;
    for (const v of rowOf(m, i)) {
      if (Number.isNaN(v)) masked++;
      else {
        sum += v;
        if (v > most) most = v;
      }
    }
    if (!(sum > 0)) continue;
    rows++;
    top += most;
    entropy += rowEntropy(m, i);
  }
  if (!rows) return "No row sees a key.";
  const share = masked ? `; ${masked} of ${m.rows * m.cols} cells are masked` : "";
  const from = m.pool && m.pool > 1 ? ` Each cell is the largest of ${m.pool} × ${m.pool} weights.` : "";
  if (from) return `Seen from afar.${from}`;
  return `A row's largest weight is ${(top / rows).toFixed(2)} on average, its entropy ${((100 * entropy) / rows).toFixed(0)} % of the possible${share}.`;
}

/** Signs for what cannot be seen. */
export const shown = (token: string): string =>
  token === "" ? "∅" : token.replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/^ +$/g, (s) => "␣".repeat(s.length));

export function shorten(text: string, most: number): string {
  const all = Array.from(text);
  if (all.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return `${all.slice(0, most - 1 - tail).join("")}…${tail ? all.slice(-tail).join("") : ""}`;
}

export const csvLine = (cells: (string | number)[]): string =>
  cells.map((c) => (typeof c === "string" && /[",\n\r]/.test(c) ? `"${c.replace(/"/g, '""')}"` : String(c))).join(",");

/** Float32 as the shortest decimal that reads back as the same float32: 0.1, not 0.10000000149. */
export function shortest(v: number): string {
  for (let digits = 6; digits < 10; digits++) {
    const text = v.toPrecision(digits);
    if (Math.fround(Number(text)) === v) return String(Number(text));
  }
  return String(v);
}

export function toCsv(m: Matrix): string {
  const lines = [csvLine(["", ...m.colLabels])];
  for (let i = 0; i < m.rows; i++) {
    lines.push(csvLine([m.rowLabels[i], ...Array.from(rowOf(m, i), (v) => (Number.isNaN(v) ? "masked" : shortest(v)))]));
  }
  return lines.join("\n") + "\n";
}
