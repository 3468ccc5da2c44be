// The cursor of a map: where pointer and keys put it, and what must scroll so that it is seen.
import type { MapLayout } from "./heatmap_draw";
import { type Matrix, rowMaximum } from "./matrix";

/** Row and column. */
export type Cell = [number, number];

/** A map on the screen: the box that scrolls it and the canvas that stands still in it. */
export interface Frame {
  box: HTMLElement;
  canvas: HTMLElement;
  m: Matrix;
  layout: MapLayout;
  size: number;
}

/** The cell under a point of the screen, or null beside the map. */
export function cellAt({ box, canvas, m, layout, size }: Frame, p: { clientX: number; clientY: number }): Cell | null {
  const r = canvas.getBoundingClientRect();
  const x = p.clientX - r.left - layout.left;
  const y = p.clientY - r.top - layout.top;
  const i = Math.floor((y + box.scrollTop) / size);
  const j = Math.floor((x + box.scrollLeft) / size);
  return x >= 0 && y >= 0 && i < m.rows && j < m.cols ? [i, j] : null;
}

/** Where a key moves the cursor, or null for keys that move nothing. The first arrow only puts it down at `start`. */
export function cellByKey(e: KeyboardEvent, m: Matrix, cursor: Cell | null, start: number): Cell | null {
  const [i, j] = cursor ?? [Math.max(0, Math.min(m.rows - 1, start)), 0];
  const step = cursor ? (e.shiftKey ? 10 : 1) : 0;
  const moves: Record<string, Cell> = {
    ArrowUp: [i - step, j],
    ArrowDown: [i + step, j],
    ArrowLeft: [i, j - step],
    ArrowRight: [i, j + step],
    Home: [i, 0],
    End: [i, m.cols - 1],
    m: [i, rowMaximum(m, i)],
  };
  const to = moves[e.key];
  return to ? [Math.max(0, Math.min(m.rows - 1, to[0])), Math.max(0, Math.min(m.cols - 1, to[1]))] : null;
}

/** Scrolls as little as shows the cell. */
export function reveal({ box, layout, size }: Frame, [i, j]: Cell): void {
  const x = j * size;
  const y = i * size;
  const width = box.clientWidth - layout.left;
  const height = box.clientHeight - layout.top;
  if (x < box.scrollLeft) box.scrollLeft = x;
  if (x + size > box.scrollLeft + width) box.scrollLeft = x + size - width;
  if (y < box.scrollTop) box.scrollTop = y;
  if (y + size > box.scrollTop + height) box.scrollTop = y + size - height;
}
