// The current view as files: SVG, PNG, CSV, and one HTML file with the data inside. Each view says how; the menu saves.
import { signal } from "@preact/signals";
import type { Trace } from "../api";
import { freeCanvas } from "../canvas";
import type { Scale } from "../colors";
import { coloursOf } from "../map/legend";
import { caption, type Matrix } from "../map/matrix";
import { aboutTrace, trace } from "../trace";
import { matrixCsv } from "./csv";
import { htmlOf } from "./html";
import { mapSvg } from "./map_svg";

/** A view's picture and numbers. `map` adds numbers under the pointer to the HTML file, `about` what they came from. */
export interface Exportable {
  title: string;
  caption: string;
  svg: (bare?: boolean) => string; // bare: title and caption stand elsewhere
  csv: () => string;
  map?: Matrix;
  about?: [string, string][];
}

export const exporting = signal<Exportable | null>(null);

/** The export of a view of a trace; of two side by side, the first is saved. */
export function exportTrace(t: Trace, e: Exportable): void {
  if (trace.value?.id === t.id) exporting.value = { ...e, about: aboutTrace(t) };
}

export function mapExport(title: string, m: Matrix, scale: Scale): Exportable {
  const said = scale === "centered" ? "" : `${caption(m)} `; // differences are no weights
  const text = said + coloursOf(m, scale);
  const svg = (bare = false) => mapSvg(bare ? "" : title, m, scale, bare ? "" : text);
  return { title, caption: text, svg, csv: () => matrixCsv(m), map: m };
}

export function save(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** File names keep letters, digits, - and _. */
const fileName = (title: string): string => title.replace(/[^\w-]+/g, "-").replace(/^-|-$/g, "") || "map";

function rasterise(svg: string, ratio: number): Promise<Blob> {
  return new Promise((done, fail) => {
    const image = new Image();
    const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    image.onload = () => {
      const fit = Math.min(ratio, 12000 / Math.max(image.width, image.height));
      const { canvas, c } = freeCanvas(Math.round(image.width * fit), Math.round(image.height * fit));
      c.scale(fit, fit);
      c.drawImage(image, 0, 0);
      URL.revokeObjectURL(address);
      canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png");
    };
    image.onerror = () => fail(new Error("the picture could not be drawn"));
    image.src = address;
  });
}

export type FileKind = "svg" | "png" | "csv" | "html";
export async function saveAs(kind: FileKind, e: Exportable): Promise<void> {
  const name = `${fileName(e.title)}.${kind}`;
  if (kind === "png") save(name, await rasterise(e.svg(), 2));
  else if (kind === "svg") save(name, new Blob([e.svg()], { type: "image/svg+xml" }));
  else if (kind === "csv") save(name, new Blob([e.csv()], { type: "text/csv" }));
  else save(name, new Blob([htmlOf(e)], { type: "text/html" }));
}
