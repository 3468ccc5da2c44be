// The cells of a map as small canvases of one pixel per cell, enlarged without smoothing.
import { freeCanvas } from "../canvas";
import { at, colorTable, inkOn, type Scale } from "../colors";
import { type Matrix, shades } from "./matrix";

const tileSize = 256;

/** First and one past the last row or column. */
export type Span = [number, number];

/** A map cut into small canvases, each made when first seen. */
export class Tiles {
  private readonly made = new Map<number, HTMLCanvasElement>();
  private readonly shade: Float32Array;
  private readonly table: Uint8ClampedArray;

  constructor(
    readonly m: Matrix,
    scale: Scale,
  ) {
    this.shade = shades(m, scale);
    this.table = colorTable(scale);
  }

  /** Ink that can be read on a cell. */
  ink(i: number, j: number): string {
    return inkOn(this.table, this.shade[i * this.m.cols + j]);
  }

  /** Draws rows and columns of cells `size` pixels wide; cell (0, 0) begins at (x, y). */
  draw(c: CanvasRenderingContext2D, x: number, y: number, size: number, rows: Span, cols: Span): void {
    c.imageSmoothingEnabled = false;
    for (let ti = Math.floor(rows[0] / tileSize); ti * tileSize < rows[1]; ti++) {
      for (let tj = Math.floor(cols[0] / tileSize); tj * tileSize < cols[1]; tj++) {
        const t = this.tile(ti, tj);
        c.drawImage(t, x + tj * tileSize * size, y + ti * tileSize * size, t.width * size, t.height * size);
      }
    }
  }

  /** The whole map, one pixel per cell, as a data address. */
  dataUrl(): string {
    const { canvas, c } = freeCanvas(this.m.cols, this.m.rows);
    this.draw(c, 0, 0, 1, [0, this.m.rows], [0, this.m.cols]);
    return canvas.toDataURL("image/png");
  }

  private tile(ti: number, tj: number): HTMLCanvasElement {
    const key = ti * 65536 + tj;
    const known = this.made.get(key);
    if (known) return known;
    const rows = Math.min(tileSize, this.m.rows - ti * tileSize);
    const cols = Math.min(tileSize, this.m.cols - tj * tileSize);
    const { canvas, c } = freeCanvas(cols, rows);
    const image = c.createImageData(cols, rows);
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < cols; j++) {
        const shade = this.shade[(ti * tileSize + i) * this.m.cols + tj * tileSize + j];
        if (Number.isNaN(shade)) continue; // masked: the hatch below shows
        const from = at(shade);
        image.data.set(this.table.subarray(from, from + 4), (i * cols + j) * 4);
      }
    }
    c.putImageData(image, 0, 0);
    this.made.set(key, canvas);
    return canvas;
  }
}
