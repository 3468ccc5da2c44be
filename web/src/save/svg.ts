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

/** The page's charts, one below the other. */
export function chartsSvg(title: string, boxes: { label: string; svg: SVGSVGElement }[], bare = false): string {
  let y = 0;
  let width = 400;
  const parts: string[] = [];
  for (const { label, svg } of boxes) {
    const copy = svg.cloneNode(true) as SVGSVGElement;
    if (label) {
      parts.push(svgText(8, y + 14, label));
      y += 20;
    }
    copy.setAttribute("x", "0");
    copy.setAttribute("y", String(y));
    copy.style.color = inks().ink;
    copy.style.setProperty("--plot-background", inks().background);
    parts.push(new XMLSerializer().serializeToString(copy));
    y += (Number(svg.getAttribute("height")) || svg.clientHeight) + 8;
    width = Math.max(width, Number(svg.getAttribute("width")) || svg.clientWidth);
  }
  return titled(bare ? "" : title, { width, height: y }, parts.join(""));
}

/** The charts of figures, each under its caption. */
export const figuresSvg = (title: string, charts: SVGSVGElement[], bare = false): string =>
  chartsSvg(
    title,
    charts.map((svg) => ({ label: svg.closest("figure")?.querySelector("figcaption")?.textContent ?? "", svg })),
    bare,
  );
