// The current view as files: SVG, PNG, CSV, and one HTML file with the data inside. Each view says how; the menu saves.
import { signal } from "@preact/signals";
import { freeCanvas } from "../canvas";
import type { Scale } from "../colors";
import { caption, type Matrix } from "../map/matrix";
import { matrixCsv } from "./csv";
import { htmlOf } from "./html";
import { mapSvg } from "./map_svg";

/** A view's picture and numbers. `map` adds numbers under the pointer to the HTML file. */
export interface Exportable {
  title: string;
  caption: string;
  svg: () => string;
  csv: () => string;
  map?: Matrix;
}

export const exporting = signal<Exportable | null>(null);

export const mapExport = (title: string, m: Matrix, scale: Scale): Exportable => ({
  title,
  caption: caption(m),
  svg: () => mapSvg(title, m, scale),
  csv: () => matrixCsv(m),
  map: m,
});

function save(name: string, data: Blob): void {
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
