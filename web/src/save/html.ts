// One HTML file that shows a view without this program: picture, caption and the numbers themselves.
import { inks } from "../colors";
import type { Matrix } from "../map/matrix";
import type { Exportable } from "./files";
import { escapeMarkup } from "./svg";

interface MapData {
  rows: string[];
  columns: string[];
  values: (number | null)[]; // null = masked
}

const mapData = (m: Matrix): MapData => ({
  rows: m.rowLabels,
  columns: m.colLabels,
  values: Array.from(m.values, (v) => (Number.isNaN(v) ? null : v)),
});

/** Runs in the saved file, so it uses nothing from outside itself: shows the number under the pointer. */
function readNumbers(): void {
  const data = JSON.parse(document.getElementById("data")!.textContent!) as Partial<MapData>;
  const cells = document.getElementById("cells");
  const { rows, columns, values } = data;
  if (!cells || !rows || !columns || !values) return;
  document.querySelector("svg")!.addEventListener("pointermove", (e) => {
    const r = cells.getBoundingClientRect();
    const i = Math.floor(((e.clientY - r.top) / r.height) * rows.length);
    const j = Math.floor(((e.clientX - r.left) / r.width) * columns.length);
    if (i < 0 || j < 0 || i >= rows.length || j >= columns.length) return;
    const v = values[i * columns.length + j];
    const number = v === null ? "masked" : v.toFixed(4);
    document.getElementById("value")!.textContent = `${rows[i]} (${i}) \u2192 ${columns[j]} (${j}): ${number}`;
  });
}

const aboutHtml = (about: [string, string][]): string =>
  `<dl>${about.map(([name, text]) => `<dt>${escapeMarkup(name)}</dt><dd>${escapeMarkup(text)}</dd>`).join("")}</dl>`;

export function htmlOf({ title, caption, svg, csv, map, about }: Exportable): string {
  const { background, ink } = inks();
  const data = JSON.stringify({ title, ...(map ? mapData(map) : { csv: csv() }) }).replace(/</g, "\\u003c");
  const name = escapeMarkup(title);
  return [
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
    `<title>${name}</title>`,
    `<style>body{font-family:system-ui,sans-serif;margin:2rem;background:${background};color:${ink}}`,
    "svg{max-width:100%;height:auto}dl{display:grid;grid-template-columns:auto 1fr;gap:.2rem 1rem}",
    "dt{opacity:.7}dd{margin:0;font-family:monospace;overflow-wrap:anywhere;white-space:pre-wrap}</style>",
    `<h1 style="font-size:1.2rem">${name}</h1>`,
    about ? aboutHtml(about) : "",
    svg(true),
    `<p id="value" style="font-family:monospace;min-height:1.4em">${map ? "Point at a cell." : ""}</p>`,
    `<p>${escapeMarkup(caption)}</p>`,
    map ? "" : `<details><summary>The numbers</summary><pre>${escapeMarkup(csv())}</pre></details>`,
    `<script type="application/json" id="data">${data}</script>`,
    `<script>(${readNumbers})()</script></html>`,
  ].join("");
}
