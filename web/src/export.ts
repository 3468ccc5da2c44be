// What one sees as files: SVG, PNG, CSV, and one HTML file with the data inside. Each view says how; the menu saves.
import { signal } from "@preact/signals";
import { type Scale, inks } from "./colors";
import { Tiles, cellText, labelStep, mapFont, mapLayout } from "./heatmap_draw";
import { type Matrix, caption, cell, shorten, shown, toCsv } from "./matrix";

/** A view's picture and numbers. `map` adds numbers under the pointer to the HTML file. */
export interface Exportable {
  title: string;
  caption: string;
  svg: () => string;
  csv: () => string;
  map?: Matrix;
}

export const exporting = signal<Exportable | null>(null);

function save(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export const escape = (s: string) => s.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);
/** File names keep letters, digits, - and _. */
export const fileName = (title: string): string => title.replace(/[^\w-]+/g, "-").replace(/^-|-$/g, "") || "map";

export function svgOf(width: number, height: number, body: string): string {
  const { background, ink } = inks();
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${escape(mapFont)}" font-size="12" fill="${ink}" color="${ink}"><rect width="100%" height="100%" fill="${background}"/>${body}</svg>`;
}

/** Lines of at most `most` letters. */
function wrapped(text: string, most: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length + 1 > most) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines;
}

/** The map with vector labels; its cells are an embedded picture of one pixel each, masked ones hatched below it. */
export function mapSvg(title: string, m: Matrix, scale: Scale): string {
  const size = Math.max(2, Math.min(24, Math.floor(1600 / Math.max(m.rows, m.cols))));
  const layout = mapLayout(m), every = labelStep(size), { ink, hatch, grid, soft } = inks();
  const left = layout.left + 8, top = layout.top + 28;
  const width = Math.max(420, left + m.cols * size + layout.right + 8);
  const words = wrapped(caption(m), Math.floor((width - 16) / 7.3));
  const height = top + m.rows * size + 12 + words.length * 18;
  const tiles = new Tiles(m, scale);
  const area = `x="${left}" y="${top}" width="${m.cols * size}" height="${m.rows * size}"`;
  const out = [
    `<defs><pattern id="h" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M-1 7L7 -1" stroke="${hatch}"/></pattern></defs>`,
    `<text x="8" y="20" font-weight="bold">${escape(title)}</text>`,
    `<text x="${left}" y="38" fill="${soft}">${escape(m.colTitle ?? "key")} →</text>`,
    `<text transform="translate(16 ${top}) rotate(-90)" text-anchor="end" fill="${soft}">← ${escape(m.rowTitle ?? "query")}</text>`,
    `<rect ${area} fill="url(#h)"/>`,
    `<image id="cells" ${area} preserveAspectRatio="none" style="image-rendering:pixelated" href="${tiles.dataUrl()}"/>`,
    `<rect ${area} fill="none" stroke="${grid}"/>`,
  ];
  m.rowLabels.forEach((t, i) => {
    if (i % every === 0) out.push(`<text x="${left - 7}" y="${top + (i + 0.5) * size}" text-anchor="end" dominant-baseline="central">${escape(shorten(shown(t), 13))}</text>`);
  });
  m.colLabels.forEach((t, j) => {
    if (j % every) return;
    const x = left + (j + 0.5) * size, y = top - 8;
    out.push(`<text x="${x}" y="${y}" ${layout.turned ? `transform="rotate(-60 ${x} ${y})"` : 'text-anchor="middle"'}>${escape(shorten(shown(t), 13))}</text>`);
  });
  if (m.cols <= 24 && m.rows <= 24 && size >= 24) {
    for (let i = 0; i < m.rows; i++) {
      for (let j = 0; j < m.cols; j++) {
        if (Number.isNaN(cell(m, i, j)) || Math.abs(cell(m, i, j)) < 0.005) continue;
        out.push(`<text x="${left + (j + 0.5) * size}" y="${top + (i + 0.5) * size}" font-size="9" text-anchor="middle" dominant-baseline="central" fill="${tiles.ink(i, j)}">${cellText(cell(m, i, j))}</text>`);
      }
    }
  }
  words.forEach((line, k) => out.push(`<text x="8" y="${top + m.rows * size + 22 + 18 * k}" fill="${ink}">${escape(line)}</text>`));
  return svgOf(width, height, out.join(""));
}

export const mapExport = (title: string, m: Matrix, scale: Scale): Exportable => ({ title, caption: caption(m), svg: () => mapSvg(title, m, scale), csv: () => toCsv(m), map: m });

/** Charts that stand on the page, one below the other. */
export function chartsSvg(title: string, boxes: { label: string; svg: SVGSVGElement }[]): string {
  let y = 30;
  let width = 400;
  const parts = [`<text x="8" y="20" font-weight="bold">${escape(title)}</text>`];
  for (const { label, svg } of boxes) {
    const copy = svg.cloneNode(true) as SVGSVGElement;
    const w = Number(svg.getAttribute("width")) || svg.clientWidth, h = Number(svg.getAttribute("height")) || svg.clientHeight;
    if (label) {
      parts.push(`<text x="8" y="${y + 14}">${escape(label)}</text>`);
      y += 20;
    }
    copy.setAttribute("x", "0");
    copy.setAttribute("y", String(y));
    copy.style.color = inks().ink;
    copy.style.setProperty("--plot-background", inks().background);
    parts.push(new XMLSerializer().serializeToString(copy));
    y += h + 8;
    width = Math.max(width, w);
  }
  return svgOf(width, y, parts.join(""));
}

function rasterise(svg: string, ratio: number): Promise<Blob> {
  return new Promise((done, fail) => {
    const image = new Image();
    const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    image.onload = () => {
      const fit = Math.min(ratio, 12000 / Math.max(image.width, image.height));
      const canvas = document.createElement("canvas");
      canvas.width = Math.round(image.width * fit);
      canvas.height = Math.round(image.height * fit);
      const c = canvas.getContext("2d")!;
      c.scale(fit, fit);
      c.drawImage(image, 0, 0);
      URL.revokeObjectURL(address);
      canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png");
    };
    image.onerror = () => fail(new Error("the picture could not be drawn"));
    image.src = address;
  });
}

// Runs in the saved file: the number under the pointer, without this program.
const reader = `const d=JSON.parse(document.getElementById("data").textContent),p=document.getElementById("value"),b=document.getElementById("cells");
if(d.columns&&b)document.querySelector("svg").addEventListener("pointermove",e=>{const r=b.getBoundingClientRect(),j=Math.floor((e.clientX-r.left)/r.width*d.columns.length),i=Math.floor((e.clientY-r.top)/r.height*d.rows.length);
if(i<0||j<0||i>=d.rows.length||j>=d.columns.length)return;const v=d.values[i*d.columns.length+j];p.textContent=d.rows[i]+" ("+i+") \\u2192 "+d.columns[j]+" ("+j+"): "+(v===null?"masked":v.toFixed(4))});`;

export function htmlOf(e: Exportable): string {
  const { background, ink } = inks();
  const m = e.map;
  const data = m ? { title: e.title, rows: m.rowLabels, columns: m.colLabels, values: Array.from(m.values, (v) => (Number.isNaN(v) ? null : v)) } : { title: e.title, csv: e.csv() };
  const numbers = m ? "" : `<details><summary>The numbers</summary><pre>${escape(e.csv())}</pre></details>`;
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(e.title)}</title><style>body{font-family:system-ui,sans-serif;margin:2rem;background:${background};color:${ink}}svg{max-width:100%;height:auto}</style><h1 style="font-size:1.2rem">${escape(e.title)}</h1>${e.svg()}<p id="value" style="font-family:monospace;min-height:1.4em">${m ? "Point at a cell." : ""}</p><p>${escape(e.caption)}</p>${numbers}<script type="application/json" id="data">${JSON.stringify(data).replace(/</g, "\\u003c")}</script><script>${reader}</script></html>`;
}

export type FileKind = "svg" | "png" | "csv" | "html";
export async function saveAs(kind: FileKind, e: Exportable): Promise<void> {
  const name = `${fileName(e.title)}.${kind}`;
  if (kind === "png") save(name, await rasterise(e.svg(), 2));
  else if (kind === "svg") save(name, new Blob([e.svg()], { type: "image/svg+xml" }));
  else if (kind === "csv") save(name, new Blob([e.csv()], { type: "text/csv" }));
  else save(name, new Blob([htmlOf(e)], { type: "text/html" }));
}
