// What one sees as files: PNG, SVG, CSV, and one HTML file with the data inside.
import { colorTable } from "./colors";
import { drawMap, mapSize } from "./heatmap";
import type { Scale } from "./colors";
import { type Matrix, caption, shades, shorten, shown, toCsv } from "./matrix";

function save(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const escape = (s: string) => s.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);
/** File names keep letters, digits, - and _. */
export const fileName = (title: string): string => title.replace(/[^\w-]+/g, "-").replace(/^-|-$/g, "") || "map";

export const saveCsv = (title: string, m: Matrix): void => save(`${fileName(title)}.csv`, new Blob([toCsv(m)], { type: "text/csv" }));

export function savePng(title: string, m: Matrix, scale: Scale): void {
  const size = Math.max(2, Math.min(24, Math.floor(4000 / Math.max(m.rows, m.cols))));
  const { width, height } = mapSize(m, size);
  const canvas = document.createElement("canvas");
  const ratio = Math.min(2, 8000 / Math.max(width, height));
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const c = canvas.getContext("2d")!;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawMap(c, { m, scale, size, left: 0, top: 0, width, height, cursor: null, pinned: -1 });
  canvas.toBlob((blob) => blob && save(`${fileName(title)}.png`, blob), "image/png");
}

/** One pixel a cell, to be enlarged without smoothing. */
function pixels(m: Matrix, scale: Scale): string {
  const canvas = document.createElement("canvas");
  canvas.width = m.cols;
  canvas.height = m.rows;
  const c = canvas.getContext("2d")!;
  const image = c.createImageData(m.cols, m.rows);
  const table = colorTable(scale);
  shades(m, scale).forEach((s, i) => {
    if (Number.isNaN(s)) image.data.set([200, 200, 200, 90], i * 4);
    else image.data.set(table.subarray(Math.max(0, Math.min(255, Math.round(s * 255))) * 4, Math.max(0, Math.min(255, Math.round(s * 255))) * 4 + 4), i * 4);
  });
  c.putImageData(image, 0, 0);
  return canvas.toDataURL("image/png");
}

export function mapSvg(title: string, m: Matrix, scale: Scale): string {
  const size = Math.max(3, Math.min(24, Math.floor(1600 / Math.max(m.rows, m.cols))));
  const left = 120, top = 110, every = size >= 10 ? 1 : 5;
  const width = left + m.cols * size + 60, height = top + m.rows * size + 40;
  const text = [`<text x="8" y="20" font-weight="bold">${escape(title)}</text>`];
  m.rowLabels.forEach((t, i) => {
    if (i % every === 0) text.push(`<text x="${left - 6}" y="${top + (i + 0.5) * size}" text-anchor="end" dominant-baseline="central">${escape(shorten(shown(t), 14))}</text>`);
  });
  m.colLabels.forEach((t, j) => {
    const x = left + (j + 0.5) * size;
    if (j % every === 0) text.push(`<text x="${x}" y="${top - 6}" transform="rotate(-60 ${x} ${top - 6})">${escape(shorten(shown(t), 14))}</text>`);
  });
  text.push(`<text x="8" y="${height - 12}">${escape(caption(m))}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="12"><rect width="100%" height="100%" fill="#fff"/><image x="${left}" y="${top}" width="${m.cols * size}" height="${m.rows * size}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${pixels(m, scale)}"/>${text.join("")}</svg>`;
}

export const saveSvg = (title: string, m: Matrix, scale: Scale): void =>
  save(`${fileName(title)}.svg`, new Blob([mapSvg(title, m, scale)], { type: "image/svg+xml" }));

export function saveHtml(title: string, m: Matrix, scale: Scale): void {
  const data = JSON.stringify({ title, rows: m.rowLabels, columns: m.colLabels, values: Array.from(m.values, (v) => (Number.isNaN(v) ? null : v)) });
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escape(title)}</title><body style="font-family:sans-serif;margin:2rem"><h1 style="font-size:1.2rem">${escape(title)}</h1>${mapSvg(title, m, scale)}<p>${escape(caption(m))}</p><script type="application/json" id="data">${data.replace(/</g, "\\u003c")}</script></body></html>`;
  save(`${fileName(title)}.html`, new Blob([html], { type: "text/html" }));
}
