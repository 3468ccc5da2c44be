// Drawing a map on a canvas: tiles of one pixel a cell, enlarged without smoothing; labels and cursor on top.
import { type Scale, at, colorTable, inkOn, inks } from "./colors";
import { type Matrix, cell, shades, shorten, shown } from "./matrix";

export const mapFont = "ui-monospace, 'DejaVu Sans Mono', Menlo, monospace";
const charWidth = 7.3; // of 12 px monospace
const mostChars = 13;
const tileSize = 256;

/** Room for labels; short column labels stand upright, long ones are turned. */
export interface MapLayout {
  left: number;
  top: number;
  right: number; // room for turned labels that lean out
  turned: boolean;
}

export function mapLayout(m: Matrix): MapLayout {
  const longest = (labels: string[]) => Math.min(mostChars, labels.reduce((a, t) => Math.max(a, Array.from(shown(t)).length), 1));
  const across = longest(m.colLabels);
  const turned = across > 2;
  return {
    left: Math.ceil(longest(m.rowLabels) * charWidth) + 32,
    top: turned ? Math.ceil(across * charWidth * 0.87) + 34 : 42,
    right: turned ? Math.ceil(across * charWidth * 0.5) + 8 : 8,
    turned,
  };
}

/** A map cut into small canvases, each made when first seen. */
export class Tiles {
  private readonly made = new Map<number, HTMLCanvasElement>();
  private readonly shade: Float32Array;
  private readonly table: Uint8ClampedArray;

  constructor(readonly m: Matrix, scale: Scale) {
    this.shade = shades(m, scale);
    this.table = colorTable(scale);
  }

  shadeOf(i: number, j: number): number {
    return this.shade[i * this.m.cols + j];
  }
  ink(i: number, j: number): string {
    return inkOn(this.table, this.shadeOf(i, j));
  }

  tile(ti: number, tj: number): HTMLCanvasElement {
    const key = ti * 65536 + tj;
    const known = this.made.get(key);
    if (known) return known;
    const { m } = this;
    const rows = Math.min(tileSize, m.rows - ti * tileSize), cols = Math.min(tileSize, m.cols - tj * tileSize);
    const canvas = document.createElement("canvas");
    canvas.width = cols;
    canvas.height = rows;
    const c = canvas.getContext("2d")!;
    const image = c.createImageData(cols, rows);
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < cols; j++) {
        const s = this.shade[(ti * tileSize + i) * m.cols + tj * tileSize + j];
        if (Number.isNaN(s)) continue; // masked: the hatch below shows
        const k = at(s), to = (i * cols + j) * 4;
        for (let b = 0; b < 4; b++) image.data[to + b] = this.table[k + b];
      }
    }
    c.putImageData(image, 0, 0);
    this.made.set(key, canvas);
    return canvas;
  }

  /** Draws rows and columns of cells `size` pixels wide; cell (0, 0) begins at (x, y). */
  draw(c: CanvasRenderingContext2D, x: number, y: number, size: number, rows: [number, number], cols: [number, number]): void {
    c.imageSmoothingEnabled = false;
    for (let ti = Math.floor(rows[0] / tileSize); ti * tileSize < rows[1]; ti++) {
      for (let tj = Math.floor(cols[0] / tileSize); tj * tileSize < cols[1]; tj++) {
        const t = this.tile(ti, tj);
        c.drawImage(t, x + tj * tileSize * size, y + ti * tileSize * size, t.width * size, t.height * size);
      }
    }
  }

  /** The whole map, one pixel a cell, as a data address. */
  dataUrl(): string {
    const canvas = document.createElement("canvas");
    canvas.width = this.m.cols;
    canvas.height = this.m.rows;
    this.draw(canvas.getContext("2d")!, 0, 0, 1, [0, this.m.rows], [0, this.m.cols]);
    return canvas.toDataURL("image/png");
  }
}

export interface Look {
  tiles: Tiles;
  layout: MapLayout;
  size: number; // pixels a cell
  left: number; // first pixel in sight
  top: number;
  width: number; // of the canvas
  height: number;
  cursor: [number, number] | null;
  pinned: number;
}

function hatchPattern(c: CanvasRenderingContext2D): CanvasPattern {
  const p = document.createElement("canvas");
  p.width = p.height = 6;
  const d = p.getContext("2d")!;
  d.strokeStyle = inks().hatch;
  d.beginPath();
  for (const o of [-6, 0, 6]) {
    d.moveTo(o - 1, 7);
    d.lineTo(o + 7, -1);
  }
  d.stroke();
  return c.createPattern(p, "repeat")!;
}

/** Every label while cells are wide enough, else every 2nd, 5th, 10th, … */
export const labelStep = (size: number): number => [1, 2, 5, 10, 20, 50, 100, 200].find((n) => n * size >= 11) ?? 500;

type Span = [number, number];

function drawCells(c: CanvasRenderingContext2D, look: Look, rows: Span, cols: Span): void {
  const { tiles, size, layout } = look;
  const x = layout.left - look.left, y = layout.top - look.top;
  c.fillStyle = hatchPattern(c);
  c.fillRect(x + cols[0] * size, y + rows[0] * size, (cols[1] - cols[0]) * size, (rows[1] - rows[0]) * size);
  tiles.draw(c, x, y, size, rows, cols);
  c.strokeStyle = inks().grid;
  c.lineWidth = 1;
  c.beginPath();
  const inner = size >= 8;
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
  if (size < 34) return;
  c.font = `11px ${mapFont}`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  for (let i = rows[0]; i < rows[1]; i++) {
    for (let j = cols[0]; j < cols[1]; j++) {
      const v = cell(tiles.m, i, j);
      if (Number.isNaN(v) || Math.abs(v) < 0.005) continue; // an empty cell says zero
      c.fillStyle = tiles.ink(i, j);
      c.fillText(cellText(v), x + (j + 0.5) * size, y + (i + 0.5) * size);
    }
  }
}

/** Two digits fit into a large cell. */
export const cellText = (v: number): string => (Math.abs(v) >= 100 ? v.toFixed(0) : Math.abs(v) >= 10 ? v.toFixed(1) : v.toFixed(2).replace(/^(-?)0\./, "$1."));

function drawLabels(c: CanvasRenderingContext2D, look: Look, rows: Span, cols: Span): void {
  const { tiles: { m }, size, layout } = look;
  const every = labelStep(size);
  const { ink, soft, strong, background } = inks();
  c.fillStyle = background;
  c.fillRect(0, layout.top, layout.left - 1, look.height);
  c.fillRect(0, 0, look.width, layout.top - 1);
  c.textBaseline = "middle";
  c.fillStyle = soft;
  c.font = "12px system-ui, sans-serif";
  c.textAlign = "left";
  c.fillText(`${m.colTitle ?? "key"} →`, layout.left, 9);
  c.save();
  c.translate(10, layout.top);
  c.rotate(-Math.PI / 2);
  c.textAlign = "right";
  c.fillText(`← ${m.rowTitle ?? "query"}`, 0, 0);
  c.restore();
  c.font = `${every === 1 ? Math.min(12, size) : 12}px ${mapFont}`;
  c.textAlign = "right";
  for (let i = rows[0]; i < rows[1]; i++) {
    const here = look.cursor?.[0] === i || look.pinned === i;
    const y = layout.top + (i + 0.5) * size - look.top;
    if ((i % every && !here) || y < layout.top - 2) continue;
    if (here && every > 1) blank(c, 20, y - 8, layout.left - 22, 16);
    c.fillStyle = here ? strong : ink;
    c.fillText(shorten(shown(m.rowLabels[i]), mostChars), layout.left - 7, y);
  }
  for (let j = cols[0]; j < cols[1]; j++) {
    const here = look.cursor?.[1] === j;
    const x = layout.left + (j + 0.5) * size - look.left;
    if ((j % every && !here) || x < layout.left - 2) continue;
    c.save();
    c.translate(x, layout.top - 8);
    if (layout.turned) c.rotate(-Math.PI / 3);
    if (here && every > 1) blank(c, -2, -8, 100, 16);
    c.fillStyle = here ? strong : ink;
    c.textAlign = layout.turned ? "left" : "center";
    c.fillText(shorten(shown(m.colLabels[j]), mostChars), layout.turned ? 2 : 0, layout.turned ? 0 : -4);
    c.restore();
  }
}

function blank(c: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  c.fillStyle = inks().background;
  c.fillRect(x, y, width, height);
}

/** Draws what is in sight. */
export function drawMap(c: CanvasRenderingContext2D, look: Look): void {
  const { tiles: { m }, size, layout } = look;
  const rows: Span = [Math.max(0, Math.floor(look.top / size)), Math.min(m.rows, Math.ceil((look.top + look.height - layout.top) / size))];
  const cols: Span = [Math.max(0, Math.floor(look.left / size)), Math.min(m.cols, Math.ceil((look.left + look.width - layout.left) / size))];
  c.fillStyle = inks().background;
  c.fillRect(0, 0, look.width, look.height);
  drawCells(c, look, rows, cols);
  c.strokeStyle = inks().strong;
  const box = (i: number, j: number, width: number) => c.strokeRect(layout.left + j * size - look.left, layout.top + i * size - look.top, width, Math.max(2, size));
  if (look.pinned >= 0 && look.pinned < m.rows) {
    c.lineWidth = 1.5;
    box(look.pinned, 0, m.cols * size);
  }
  if (look.cursor) {
    c.lineWidth = 2;
    box(look.cursor[0], look.cursor[1], Math.max(2, size));
  }
  drawLabels(c, look, rows, cols);
}

export function mapSize(m: Matrix, layout: MapLayout, size: number): { width: number; height: number } {
  return { width: layout.left + m.cols * size + layout.right, height: layout.top + m.rows * size + 4 };
}
