// Drawing what is in sight of a map: cells, grid and numbers, then labels and cursor on top.

import { freeCanvas } from "../canvas";
import { inks } from "../colors";
import { cell, type Matrix } from "./matrix";
import type { Span, Tiles } from "./tiles";
import { shorten, shown } from "./tokens";

export const mapFont = "ui-monospace, 'DejaVu Sans Mono', Menlo, monospace";
const charWidth = 7.3; // of 12 px monospace
const mostChars = 13;

/** Room for labels; short column labels are upright, and turned where more than a few are long. */
export interface MapLayout {
  left: number;
  top: number;
  right: number; // room for turned labels that lean out
  turned: boolean;
  wide: number; // letters of upright column labels, but for the few that are cut
}

const longAxis = 20;
/** A long axis shows positions beside its tokens, unless they are its positions already. */
const isPlaced = (labels: string[]): boolean => labels.length > longAxis && labels.some((t, i) => t !== String(i));
const digits = (m: Matrix, labels: string[]) =>
  isPlaced(labels) ? String((labels.length - 1) * (m.pool ?? 1)).length + 1 : 0;

const uprightChars = 2;
const fewLong = 1 / 20; // of the columns: so many long labels are cut rather than that all are turned

export function mapLayout(m: Matrix): MapLayout {
  const lengths = (labels: string[]) => labels.map((t) => Math.min(mostChars, Array.from(shown(t)).length));
  const longest = (labels: string[]) => lengths(labels).reduce((a, n) => Math.max(a, n), 1);
  const turned = lengths(m.colLabels).filter((n) => n > uprightChars).length > fewLong * m.cols;
  const across = longest(m.colLabels) + digits(m, m.colLabels);
  return {
    left: Math.ceil((longest(m.rowLabels) + digits(m, m.rowLabels)) * charWidth) + 32,
    top: turned ? Math.ceil(across * charWidth * 0.87) + 34 : digits(m, m.colLabels) ? 56 : 42,
    right: turned ? Math.ceil(across * charWidth * 0.5) + 8 : 8,
    turned,
    wide: lengths(m.colLabels).reduce((a, n) => (n > uprightChars ? a : Math.max(a, n)), 1),
  };
}

export function mapSize(m: Matrix, layout: MapLayout, size: number): { width: number; height: number } {
  return { width: layout.left + m.cols * size + layout.right, height: layout.top + m.rows * size + 4 };
}

/** Every label while cells leave it `least` pixels, else every 2nd, 5th, 10th, … with `room` for its position too. */
const stepWith = (size: number, least: number, room: number): number =>
  [1, 2, 5, 10, 20, 50, 100, 200].find((n) => n * size >= (n === 1 ? least : room)) ?? 500;
export const rowStep = (size: number): number => stepWith(size, 11, 14);
/** Turned labels lean over each other; upright ones stand beside each other. */
export function columnStep({ turned, wide }: MapLayout, size: number): number {
  if (turned) return stepWith(size, 11, 20);
  const room = wide > 1 ? wide * charWidth + 3 : 11;
  return stepWith(size, room, room);
}
/** The columns that get a label. Where some are left out, upright ones stand below their positions: those that have room
 *  would read as the text. */
export function labelledColumns(m: Matrix, layout: MapLayout, size: number): number {
  const step = columnStep(layout, size);
  return step > 1 && !layout.turned ? Math.max(step, positionStep(m, size)) : step;
}
export const labelText = (token: string): string => shorten(shown(token), mostChars);

/** A token's label, with its position now and then on a long axis, and always where labels are left out. */
export function axisLabel(m: Matrix, labels: string[], i: number, every: number): string {
  const placed = (every > 1 || i % 10 === 0) && isPlaced(labels);
  return placed ? `${i * (m.pool ?? 1)} ${labelText(labels[i])}` : labelText(labels[i]);
}

/** A column's label: with its position where it is turned, cut to the room it has where it is upright. */
export function columnLabel(m: Matrix, layout: MapLayout, j: number, size: number): string {
  const every = columnStep(layout, size);
  if (layout.turned) return axisLabel(m, m.colLabels, j, every);
  return shorten(labelText(m.colLabels[j]), Math.max(layout.wide, Math.floor((size * every - 2) / charWidth)));
}

/** Columns above whose upright labels the position is written: every 10th, 20th, 50th, …, as there is room. */
export function positionStep(m: Matrix, size: number): number {
  if (!isPlaced(m.colLabels)) return 0;
  const wide = charWidth * digits(m, m.colLabels) + 4;
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

/** The label of one column; the one under the cursor covers its neighbours, and is never cut. */
function drawColumnLabel(c: Context, { tiles, layout, size, left }: Look, j: number, here: boolean): void {
  const { m } = tiles;
  const x = layout.left + (j + 0.5) * size - left;
  if (x < layout.left - 2) return;
  const text = here && !layout.turned ? labelText(m.colLabels[j]) : columnLabel(m, layout, j, size);
  const width = c.measureText(text).width;
  const [from, y] = layout.turned ? [2, 0] : [-width / 2, -4];
  c.save();
  c.translate(x, layout.top - 8);
  if (layout.turned) c.rotate(-Math.PI / 3);
  if (here) blank(c, from - 3, y - 7, width + 6, 14);
  c.fillStyle = here ? inks().strong : inks().ink;
  c.textAlign = "left";
  c.fillText(text, from, y);
  c.restore();
}

function drawColumnLabels(c: Context, look: Look, cols: Span): void {
  const { tiles, layout, size, cursor } = look;
  const every = labelledColumns(tiles.m, layout, size);
  // Turned labels lean over each other.
  c.font = `${Math.min(12, layout.turned ? 0.85 * size * every : size * every)}px ${mapFont}`;
  for (let j = cols[0]; j < cols[1]; j++) if (j % every === 0) drawColumnLabel(c, look, j, false);
  if (!layout.turned) drawPositions(c, tiles.m, look, cols);
  if (cursor) drawColumnLabel(c, look, cursor[1], true);
}

function drawLabels(c: Context, look: Look, rows: Span, cols: Span): void {
  const { layout, size } = look;
  const every = rowStep(size);
  blank(c, 0, layout.top, layout.left - 1, look.height);
  blank(c, 0, 0, look.width, layout.top - 1);
  drawTitles(c, look.tiles.m, layout);
  c.font = `${every === 1 ? Math.min(12, size) : 12}px ${mapFont}`;
  drawRowLabels(c, look, rows, every);
  drawColumnLabels(c, look, cols);
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
