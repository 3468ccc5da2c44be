// Sizes of a map's cells: as large as fits, stepwise larger and smaller, pooled from afar.
import { mapLayout } from "./heatmap_draw";
import type { Matrix } from "./matrix";

const sizes = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 120];
const pools = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
const largest = 120;
const shortAxis = 60; // tokens: up to here every label is written, and the map scrolls where it does not fit,
const longestScroll = 600; // unless its other axis is longer than this
const labelled = 12; // pixels per cell that a label needs

export interface Zoom {
  pool: number; // a cell shows the largest of pool x pool
  size: number; // pixels per cell
}

/** Whole pixels for large cells, sixteenths for small ones, so that a long map fills its panel too. */
const rounded = (room: number) => (room >= 8 ? Math.floor(room) : Math.floor(16 * room) / 16);

/** The largest cells with which the whole map fits, but none too small for labels; from afar, cells are pooled. */
export function fitZoom(m: Matrix, width: number, height: number): Zoom {
  const layout = mapLayout(m);
  const room = Math.min((width - layout.left - layout.right) / m.cols, (height - layout.top - 4) / m.rows);
  const scrolls = Math.min(m.rows, m.cols) <= shortAxis && Math.max(m.rows, m.cols) <= longestScroll;
  const least = scrolls ? labelled : 0;
  if (room >= 1 || least) return { pool: 1, size: Math.min(largest, Math.max(least, rounded(room))) };
  const pool = Math.min(64, Math.ceil(1 / Math.max(room, 1e-6)));
  return { pool, size: Math.max(1, rounded(room * pool)) };
}

export function zoomBy(z: Zoom, way: 1 | -1): Zoom {
  if (way > 0) {
    if (z.pool > 1) return { pool: [...pools].reverse().find((k) => k < z.pool) ?? 1, size: 1 };
    return { pool: 1, size: sizes.find((s) => s > z.size) ?? z.size };
  }
  const smaller = [...sizes].reverse().find((s) => s < z.size);
  if (smaller) return { pool: z.pool, size: smaller };
  return { pool: pools.find((k) => k > z.pool) ?? z.pool, size: 1 };
}
