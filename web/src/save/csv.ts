// Numbers as CSV: masked cells spelled out, float32 in its shortest form.
import { type Matrix, rowOf } from "../map/matrix";

type Cell = string | number;

const quoted = (c: Cell): string =>
  typeof c === "string" && /[",\n\r]/.test(c) ? `"${c.replace(/"/g, '""')}"` : String(c);

export const csv = (rows: Cell[][]): string => rows.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");

/** Float32 as the shortest decimal that reads back as the same float32: 0.1, not 0.10000000149. */
export function shortest(v: number): string {
  for (let digits = 6; digits < 10; digits++) {
    const text = v.toPrecision(digits);
    if (Math.fround(Number(text)) === v) return String(Number(text));
  }
  return String(v);
}

/** A weight, or that there is none. */
export const csvWeight = (v: number): string => (Number.isNaN(v) ? "masked" : shortest(v));

export const matrixCsv = (m: Matrix): string =>
  csv([["", ...m.colLabels], ...m.rowLabels.map((label, i) => [label, ...Array.from(rowOf(m, i), csvWeight)])]);
