// Drawing what is in sight of a map: cells, grid and numbers, then labels and cursor on top.

import { freeCanvas } from "../canvas";
import { inks } from "../colors";
import { cell, type Matrix } from "./matrix";
import type { Span, Tiles } from "./tiles";
import { shorten, shown } from "./tokens";

export const mapFont = "ui-monospace, 'DejaVu Sans Mono', Menlo, monospace";
const charWidth = 7.3; // of 12 px monospace
const mostChars = 13;

/** Room for labels; short column labels are upright, long ones are turned. */
export interface MapLayout {
  left: number;
  top: number;
  right: number; // room for turned labels that lean out
  turned: boolean;
}

/** An axis this long shows positions beside its tokens. */
const longAxis = 20;
const digits = (m: Matrix, n: number) => (n > longAxis ? String((n - 1) * (m.pool ?? 1)).length + 1 : 0);

export function mapLayout(m: Matrix): MapLayout {
  const longest = (labels: string[]) =>
    Math.min(
      mostChars,
      labels.reduce((a, t) => Math.max(a, Array.from(shown(t)).length), 1),
    );
  const turned = longest(m.colLabels) > 2;
  const across = longest(m.colLabels) + digits(m, m.cols);
  return {
    left: Math.ceil((longest(m.rowLabels) + digits(m, m.rows)) * charWidth) + 32,
    top: turned ? Math.ceil(across * charWidth * 0.87) + 34 : digits(m, m.cols) ? 56 : 42,
    right: turned ? Math.ceil(across * charWidth * 0.5) + 8 : 8,
    turned,
  };
}

export function mapSize(m: Matrix, layout: MapLayout, size: number): { width: number; height: number } {
  return { width: layout.left + m.cols * size + layout.right, height: layout.top + m.rows * size + 4 };
}

/** Every label while cells are wide enough, else every 2nd, 5th, 10th, … */
export const labelStep = (size: number): number => [1, 2, 5, 10, 20, 50, 100, 200].find((n) => n * size >= 11) ?? 500;
export const labelText = (token: string): string => shorten(shown(token), mostChars);

/** A token's label, with its position now and then on a long axis, and always where labels are left out. */
export function axisLabel(m: Matrix, labels: string[], i: number, every: number): string {
  const placed = labels.length > longAxis && (every > 1 || i % 10 === 0);
  return placed ? `${i * (m.pool ?? 1)} ${labelText(labels[i])}` : labelText(labels[i]);
}

/** Columns above whose upright labels the position is written: every 10th, 20th, 50th, …, as there is room. */
export function positionStep(m: Matrix, size: number): number {
  if (m.cols <= longAxis) return 0;
  const wide = charWidth * digits(m, m.cols) + 4;
  return [10, 20, 50, 100, 200, 500].find((n) => n * size >= wide) ?? 1000;
}

/** Whether the number of a cell is written into it: an empty cell says zero. */
export const hasText = (v: number): boolean => !Number.isNaN(v) && Math.abs(v) >= 0.005;
/** Two digits fit into a large cell. */
export function cellText(v: number): string {
  if (Math.abs(v) >= 10) return v.toFixed(Math.abs(v) >= 100 ? 0 : 1);
  return v.toFixed(2).replace(/^(-?)0\./, "$1.");
}

export interface Look {
  tiles: Tiles;
  layout: MapLayout;
  size: number; // pixels per cell
  left: number; // first pixel in sight
  top: number;
  width: number; // of the canvas
  height: number;
  cursor: [number, number] | null;
  pinned: number;
}

type Context = CanvasRenderingContext2D;

function hatchPattern(c: Context): CanvasPattern {
  const hatch = freeCanvas(6, 6);
  hatch.c.strokeStyle = inks().hatch;
  hatch.c.beginPath();
  for (const o of [-6, 0, 6]) {
    hatch.c.moveTo(o - 1, 7);
    hatch.c.lineTo(o + 7, -1);
  }
  hatch.c.stroke();
  return c.createPattern(hatch.canvas, "repeat")!;
}

/** Lines between large cells; around the whole map in any case. */
function drawGrid(c: Context, { tiles, size }: Look, x: number, y: number, rows: Span, cols: Span): void {
  const inner = size >= 8;
  c.strokeStyle = inks().grid;
  c.lineWidth = 1;
  c.beginPath();
  for (let i = rows[0]; i <= rows[1]; i++) {
    if (!inner && i !== 0 && i !== tiles.m.rows) continue;
    c.moveTo(x + cols[0] * size, Math.round(y + i * size) + 0.5);
    c.lineTo(x + cols[1] * size, Math.round(y + i * size) + 0.5);
  }
  for (let j = cols[0]; j <= cols[1]; j++) {
    if (!inner && j !== 0 && j !== tiles.m.cols) continue;
    c.moveTo(Math.round(x + j * size) + 0.5, y + rows[0] * size);
    c.lineTo(Math.round(x + j * size) + 0.5, y + rows[1] * size);
  }
  c.stroke();
}

function drawCells(c: Context, look: Look, rows: Span, cols: Span): void {
  const { tiles, size, layout } = look;
  const x = layout.left - look.left;
  const y = layout.top - look.top;
  c.fillStyle = hatchPattern(c);
  c.fillRect(x + cols[0] * size, y + rows[0] * size, (cols[1] - cols[0]) * size, (rows[1] - rows[0]) * size);
  tiles.draw(c, x, y, size, rows, cols);
  drawGrid(c, look, x, y, rows, cols);
  if (size < 34) return;
  c.font = `11px ${mapFont}`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  for (let i = rows[0]; i < rows[1]; i++) {
    for (let j = cols[0]; j < cols[1]; j++) {
      const v = cell(tiles.m, i, j);
      if (!hasText(v)) continue;
      c.fillStyle = tiles.ink(i, j);
      c.fillText(cellText(v), x + (j + 0.5) * size, y + (i + 0.5) * size);
    }
  }
}

function blank(c: Context, x: number, y: number, width: number, height: number): void {
  c.fillStyle = inks().background;
  c.fillRect(x, y, width, height);
}

function drawTitles(c: Context, { rowTitle = "query", colTitle = "key" }: Matrix, layout: MapLayout): void {
  c.textBaseline = "middle";
  c.fillStyle = inks().soft;
  c.font = "12px system-ui, sans-serif";
  c.textAlign = "left";
  c.fillText(`${colTitle} →`, layout.left, 9);
  c.save();
  c.translate(10, layout.top);
  c.rotate(-Math.PI / 2);
  c.textAlign = "right";
  c.fillText(`← ${rowTitle}`, 0, 0);
  c.restore();
}

function drawRowLabels(
  c: Context,
  { tiles, layout, size, top, cursor, pinned }: Look,
  rows: Span,
  every: number,
): void {
  const { ink, strong } = inks();
  const marked = [cursor?.[0] ?? -1, pinned].filter((i) => i >= 0);
  const covered = (i: number) => every > 1 && marked.some((k) => Math.abs(k - i) * size < 14);
  c.textAlign = "right";
  for (let i = rows[0]; i < rows[1]; i++) {
    const here = marked.includes(i);
    const y = layout.top + (i + 0.5) * size - top;
    if ((!here && (i % every || covered(i))) || y < layout.top - 2) continue;
    if (here && every > 1) blank(c, 20, y - 8, layout.left - 22, 16);
    c.fillStyle = here ? strong : ink;
    c.fillText(axisLabel(tiles.m, tiles.m.rowLabels, i, every), layout.left - 7, y);
  }
}

/** Positions over upright labels. */
function drawPositions(c: Context, m: Matrix, at: Pick<Look, "layout" | "size" | "left">, cols: Span): void {
  const { layout, size, left } = at;
  const step = positionStep(m, size);
  c.fillStyle = inks().soft;
  c.textAlign = "center";
  for (let j = cols[0]; step && j < cols[1]; j++) {
    const x = layout.left + (j + 0.5) * size - left;
    if (j % step === 0 && x >= layout.left - 2) c.fillText(String(j * (m.pool ?? 1)), x, layout.top - 28);
  }
}

function drawColumnLabels(c: Context, { tiles, layout, size, left, cursor }: Look, cols: Span, every: number): void {
  const { ink, strong } = inks();
  for (let j = cols[0]; j < cols[1]; j++) {
    const here = cursor?.[1] === j;
    const x = layout.left + (j + 0.5) * size - left;
    if ((j % every && !here) || x < layout.left - 2) continue;
    c.save();
    c.translate(x, layout.top - 8);
    if (layout.turned) c.rotate(-Math.PI / 3);
    if (here && every > 1) blank(c, -2, -8, 100, 16);
    c.fillStyle = here ? strong : ink;
    c.textAlign = layout.turned ? "left" : "center";
    if (layout.turned) c.fillText(axisLabel(tiles.m, tiles.m.colLabels, j, every), 2, 0);
    else c.fillText(labelText(tiles.m.colLabels[j]), 0, -4);
    c.restore();
  }
  if (!layout.turned) drawPositions(c, tiles.m, { layout, size, left }, cols);
}

function drawLabels(c: Context, look: Look, rows: Span, cols: Span): void {
  const { layout, size } = look;
  const every = labelStep(size);
  blank(c, 0, layout.top, layout.left - 1, look.height);
  blank(c, 0, 0, look.width, layout.top - 1);
  drawTitles(c, look.tiles.m, layout);
  c.font = `${every === 1 ? Math.min(12, size) : 12}px ${mapFont}`;
  drawRowLabels(c, look, rows, every);
  // Turned labels lean over each other.
  if (layout.turned) c.font = `${Math.min(12, 0.85 * size * every)}px ${mapFont}`;
  drawColumnLabels(c, look, cols, every);
}

/** Frames around the pinned row and the cell under the cursor. */
function drawFrames(c: Context, { tiles, layout, size, left, top, pinned, cursor }: Look): void {
  const frame = (i: number, j: number, width: number) =>
    c.strokeRect(layout.left + j * size - left, layout.top + i * size - top, width, Math.max(2, size));
  c.strokeStyle = inks().strong;
  if (pinned >= 0 && pinned < tiles.m.rows) {
    c.lineWidth = 1.5;
    frame(pinned, 0, tiles.m.cols * size);
  }
  if (cursor) {
    c.lineWidth = 2;
    frame(cursor[0], cursor[1], Math.max(2, size));
  }
}

/** Draws what is in sight. */
export function drawMap(c: Context, look: Look): void {
  const { layout, size } = look;
  const { m } = look.tiles;
  const span = (from: number, room: number, n: number): Span => [
    Math.max(0, Math.floor(from / size)),
    Math.min(n, Math.ceil((from + room) / size)),
  ];
  const rows = span(look.top, look.height - layout.top, m.rows);
  const cols = span(look.left, look.width - layout.left, m.cols);
  blank(c, 0, 0, look.width, look.height);
  drawCells(c, look, rows, cols);
  drawFrames(c, look);
  drawLabels(c, look, rows, cols);
}
