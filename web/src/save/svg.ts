// Pieces of SVG: text that stays text, a frame with the page's colours, charts below each other.
import { inks } from "../colors";
import { mapFont } from "../map/heatmap_draw";

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
export const escapeMarkup = (s: string): string => s.replace(/[&<>"]/g, (c) => entities[c]);

export const svgText = (x: number, y: number, text: string, attributes = ""): string =>
  `<text x="${x}" y="${y}" ${attributes}>${escapeMarkup(text)}</text>`;

/** Lines of at most `most` letters. */
export function wrapped(text: string, most: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length + 1 > most) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines;
}

/** Lines of text of which none is wider than a picture, and the height they take. */
function svgLines(text: string, width: number, y: number, look = ""): { markup: string; height: number } {
  const lines = wrapped(text, Math.floor((width - 16) / 7.8));
  const markup = lines.map((line, k) => svgText(8, y + 18 * k, line, look)).join("");
  return { markup, height: 18 * lines.length };
}

/** A picture under its whole title and over its caption; both are "" where they stand elsewhere. */
export function titled(title: string, size: { width: number; height: number }, body: string, caption = ""): string {
  const head = title ? svgLines(title, size.width, 20, 'font-weight="bold"') : { markup: "", height: 0 };
  const top = head.height ? head.height + 12 : 4;
  const foot = caption ? svgLines(caption, size.width, top + size.height + 16) : { markup: "", height: 0 };
  const all = `${head.markup}<g transform="translate(0 ${top})">${body}</g>${foot.markup}`;
  return svgOf(size.width, top + size.height + foot.height + (foot.height ? 10 : 4), all);
}

export function svgOf(width: number, height: number, body: string): string {
  const { background, ink } = inks();
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const font = `font-family="${escapeMarkup(mapFont)}" font-size="12" fill="${ink}" color="${ink}"`;
  const paper = `<rect width="100%" height="100%" fill="${background}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${font}>${paper}${body}</svg>`;
}

/** What a legend or a chart's name says, with its sub- and superscripts smaller and moved. */
function legendText(node: Node): string {
  if (!(node instanceof Element)) return escapeMarkup(node.textContent ?? "");
  const inner = Array.from(node.childNodes, legendText).join("");
  const shift = { SUB: 3, SUP: -5 }[node.tagName];
  return shift ? `<tspan font-size="75%" dy="${shift}">${inner}</tspan><tspan dy="${-shift}">\u200b</tspan>` : inner;
}

/** The page's legend of a chart, a swatch and a name each, in as many lines as a width needs. */
function legendSvg(legend: Element | null, width: number, top: number): { markup: string; height: number } {
  let [x, y] = [8, top];
  const entry = (item: Element): string => {
    const mark = item.firstElementChild as HTMLElement;
    const wide = 30 + 7.8 * (item.textContent ?? "").length;
    if (x > 8 && x + wide > width) [x, y] = [8, y + 18];
    const color = mark.style.color || mark.style.backgroundColor;
    const markup = `<rect x="${x}" y="${y + 2}" width="10" height="10" rx="2" fill="${color}"/>`;
    const text = `<text x="${x + 15}" y="${y + 11}">${legendText(item)}</text>`;
    x += wide;
    return markup + text;
  };
  const markup = Array.from(legend?.children ?? [], entry).join("");
  return { markup, height: markup ? y + 18 - top : 0 };
}

/** The page's charts, one below the other, each over its legend. */
export function chartsSvg(
  title: string,
  boxes: { label: string /* markup */; svg: SVGSVGElement; legend: Element | null }[],
  bare = false,
): string {
  let y = 0;
  let width = 400;
  const parts: string[] = [];
  for (const { label, svg, legend } of boxes) {
    const copy = svg.cloneNode(true) as SVGSVGElement;
    if (label) {
      parts.push(`<text x="8" y="${y + 14}">${label}</text>`);
      y += 20;
    }
    copy.setAttribute("x", "0");
    copy.setAttribute("y", String(y));
    copy.style.color = inks().ink;
    copy.style.setProperty("--plot-background", inks().background);
    parts.push(new XMLSerializer().serializeToString(copy));
    y += (Number(svg.getAttribute("height")) || svg.clientHeight) + 8;
    width = Math.max(width, Number(svg.getAttribute("width")) || svg.clientWidth);
    const names = legendSvg(legend, width, y);
    parts.push(names.markup);
    y += names.height;
  }
  return titled(bare ? "" : title, { width, height: y }, parts.join(""));
}

/** Pictures, one below the other. */
export function stackedSvg(pictures: string[]): string {
  let [width, height] = [0, 0];
  const parts = pictures.map((svg) => {
    const [, w, h] = /width="([\d.]+)" height="([\d.]+)"/.exec(svg)!;
    const part = `<g transform="translate(0 ${height})">${svg}</g>`;
    width = Math.max(width, Number(w));
    height += Number(h);
    return part;
  });
  return pictures.length === 1 ? pictures[0] : svgOf(width, height, parts.join(""));
}

/** The charts of figures, each under its caption. */
export const figuresSvg = (title: string, charts: SVGSVGElement[], bare = false): string =>
  chartsSvg(
    title,
    charts.map((svg) => {
      const figure = svg.closest("figure");
      const name = figure?.querySelector("figcaption");
      const label = name ? legendText(name) : "";
      return { label, svg, legend: figure?.querySelector(".legend") ?? null };
    }),
    bare,
  );
