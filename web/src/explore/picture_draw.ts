// Pictures as drawings: the pixels a model saw, with weights glowing over the patches.
import type { Picture } from "../api";
import { freeCanvas } from "../canvas";
import { inks } from "../colors";
import { cell, type Matrix, rowOf } from "../map/matrix";

/** The picture itself, one pixel per pixel. */
export function pictureCanvas(p: Picture): HTMLCanvasElement {
  const { canvas, c } = freeCanvas(p.width, p.height);
  const image = c.createImageData(p.width, p.height);
  const bytes = Uint8Array.from(atob(p.pixels), (letter) => letter.charCodeAt(0));
  for (let i = 0; i < p.width * p.height; i++) {
    for (let b = 0; b < 3; b++) image.data[i * 4 + b] = bytes[i * p.channels + (p.channels === 3 ? b : 0)];
    image.data[i * 4 + 3] = 255;
  }
  c.putImageData(image, 0, 0);
  return canvas;
}

export const patchCount = (p: Picture): number => p.patch_rows * p.patch_columns;

/** What one query gives every token; query -1 is the class token, or the mean of all where there is none. */
export function weightsOf(m: Matrix, p: Picture, query: number): Float32Array {
  if (query >= 0 || p.first_patch > 0) return rowOf(m, Math.max(0, query));
  const mean = new Float32Array(m.cols);
  for (let i = 0; i < m.rows; i++) for (let j = 0; j < m.cols; j++) mean[j] += (cell(m, i, j) || 0) / m.rows;
  return mean;
}

/** Width and height of a picture whose longer side has `side` pixels. */
export function pictureSize(p: Picture, side: number): { width: number; height: number } {
  const scale = side / Math.max(p.width, p.height);
  return { width: p.width * scale, height: p.height * scale };
}

const glow = [255, 140, 0]; // stands out from grey pictures, light and dark

interface Drawn {
  p: Picture;
  weights: Float32Array; // one per token
  query: number;
  side: number;
  grid: boolean;
}
type Context = CanvasRenderingContext2D;

function drawGlow(c: Context, p: Picture, weights: Float32Array, patch: { w: number; h: number }): void {
  const of = (k: number) => weights[p.first_patch + k] || 0;
  let top = 0;
  for (let k = 0; k < patchCount(p); k++) top = Math.max(top, of(k));
  for (let k = 0; k < patchCount(p); k++) {
    c.fillStyle = `rgba(${glow.join(",")},${top > 0 ? (0.75 * of(k)) / top : 0})`;
    c.fillRect((k % p.patch_columns) * patch.w, Math.floor(k / p.patch_columns) * patch.h, patch.w, patch.h);
  }
}

function drawGrid(c: Context, p: Picture, patch: { w: number; h: number }): void {
  c.strokeStyle = "rgba(128,128,128,0.45)";
  c.lineWidth = 1;
  c.beginPath();
  for (let i = 1; i < p.patch_rows; i++) {
    c.moveTo(0, Math.round(i * patch.h) + 0.5);
    c.lineTo(p.patch_columns * patch.w, Math.round(i * patch.h) + 0.5);
  }
  for (let j = 1; j < p.patch_columns; j++) {
    c.moveTo(Math.round(j * patch.w) + 0.5, 0);
    c.lineTo(Math.round(j * patch.w) + 0.5, p.patch_rows * patch.h);
  }
  c.stroke();
}

/** The picture, each patch as orange as its weight is large. */
export function drawPicture(c: Context, { p, weights, query, side, grid }: Drawn): void {
  const { width, height } = pictureSize(p, side);
  const patch = { w: width / p.patch_columns, h: height / p.patch_rows };
  c.imageSmoothingEnabled = false;
  c.drawImage(pictureCanvas(p), 0, 0, width, height);
  drawGlow(c, p, weights, patch);
  if (!grid) return;
  drawGrid(c, p, patch);
  const k = query - p.first_patch;
  if (k < 0) return;
  c.strokeStyle = inks().strong;
  c.lineWidth = 2;
  c.strokeRect((k % p.patch_columns) * patch.w, Math.floor(k / p.patch_columns) * patch.h, patch.w, patch.h);
}
