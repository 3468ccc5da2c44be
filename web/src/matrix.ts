// A map of weights: numbers, labels and what can be said about them.
import type { Scale } from "./colors";

export interface Matrix {
  rows: number;
  cols: number;
  values: Float32Array; // row-major, NaN = masked
  rowLabels: string[];
  colLabels: string[];
}

export const cell = (m: Matrix, i: number, j: number): number => m.values[i * m.cols + j];
const visible = (m: Matrix, i: number): number[] =>
  Array.from(m.values.subarray(i * m.cols, (i + 1) * m.cols)).filter((v) => !Number.isNaN(v));

/** Position of every cell on the colour map, 0 … 1; NaN where masked. */
export function shades(m: Matrix, scale: Scale): Float32Array {
  const out = new Float32Array(m.values.length);
  let low = Infinity, high = -Infinity;
  if (scale === "auto") {
    for (const v of m.values) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  for (let i = 0; i < m.rows; i++) {
    const row = m.values.subarray(i * m.cols, (i + 1) * m.cols);
    let top = 0, seen = 0;
    for (const v of row) {
      if (v > top) top = v;
      if (!Number.isNaN(v)) seen++;
    }
    for (let j = 0; j < m.cols; j++) {
      const v = row[j];
      if (scale === "abs") out[i * m.cols + j] = v;
      else if (scale === "row") out[i * m.cols + j] = top > 0 ? v / top : v;
      else if (scale === "lift") out[i * m.cols + j] = v > 0 ? Math.max(0, Math.min(1, 0.5 + Math.log2(v * seen) / 12)) : v === 0 ? 0 : NaN;
      else out[i * m.cols + j] = high > low ? (v - low) / (high - low) : v * 0;
    }
  }
  return out;
}

export function rowMaximum(m: Matrix, i: number): number {
  let best = 0;
  for (let j = 1; j < m.cols; j++) if (!(cell(m, i, j) <= cell(m, i, best))) best = j;
  return best;
}

/** What the cursor reads out. */
export function describeCell(m: Matrix, i: number, j: number): string {
  const v = cell(m, i, j);
  const place = `“${shown(m.rowLabels[i])}” (${i}) → “${shown(m.colLabels[j])}” (${j})`;
  if (Number.isNaN(v)) return `${place}: masked`;
  const row = visible(m, i);
  const rank = row.filter((x) => x > v).length + 1;
  const lift = v > 0 ? `, ${(v * row.length).toFixed(2)} × even` : "";
  return `${place}: ${v.toFixed(4)}, rank ${rank} of ${row.length}${lift}`;
}

/** One sentence computed from the map. */
export function caption(m: Matrix): string {
  let top = 0, entropy = 0, rows = 0, masked = 0;
  for (let i = 0; i < m.rows; i++) {
    const row = visible(m, i);
    masked += m.cols - row.length;
    const sum = row.reduce((a, b) => a + b, 0);
    if (!(sum > 0)) continue;
    rows++;
    top += Math.max(...row);
    if (row.length > 1) entropy += row.reduce((a, p) => a - (p > 0 ? p * Math.log(p) : 0), 0) / Math.log(row.length);
  }
  if (!rows) return "No row sees a key.";
  const share = masked ? `; ${masked} of ${m.rows * m.cols} cells are masked` : "";
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

export function toCsv(m: Matrix): string {
  const quote = (s: string) => (/[",\n\r]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s);
  const lines = [["", ...m.colLabels.map(quote)].join(",")];
  for (let i = 0; i < m.rows; i++) {
    const row = Array.from({ length: m.cols }, (_, j) => (Number.isNaN(cell(m, i, j)) ? "masked" : String(cell(m, i, j))));
    lines.push([quote(m.rowLabels[i]), ...row].join(","));
  }
  return lines.join("\n") + "\n";
}
