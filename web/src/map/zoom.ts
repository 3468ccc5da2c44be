// Sizes of a map's cells: as large as fits, stepwise larger and smaller, pooled from afar.
import { mapLayout } from "./heatmap_draw";
import type { Matrix } from "./matrix";

const sizes = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48];
const pools = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

export interface Zoom {
  pool: number; // a cell shows the largest of pool x pool
  size: number; // pixels per cell
}

/** The largest cells with which the whole map fits; from afar, cells are pooled. */
export function fitZoom(m: Matrix, width: number, height: number): Zoom {
  const layout = mapLayout(m);
  const room = Math.min((width - layout.left - layout.right) / m.cols, (height - layout.top - 4) / m.rows);
  if (room >= 1) return { pool: 1, size: Math.min(48, Math.max(room >= 8 ? 8 : 1, Math.floor(room))) };
  return { pool: pools.find((k) => k * room >= 1) ?? 32, size: 1 };
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
