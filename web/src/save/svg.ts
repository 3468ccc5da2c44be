// Pieces of SVG: text that stays text, a frame with the page's colours, charts below each other.
import { inks } from "../colors";
import { mapFont } from "../map/heatmap_draw";

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
export const escapeMarkup = (s: string): string => s.replace(/[&<>"]/g, (c) => entities[c]);

export const svgText = (x: number, y: number, text: string, attributes = ""): string =>
  `<text x="${x}" y="${y}" ${attributes}>${escapeMarkup(text)}</text>`;
export const svgTitle = (title: string): string => svgText(8, 20, title, 'font-weight="bold"');

export function svgOf(width: number, height: number, body: string): string {
  const { background, ink } = inks();
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const font = `font-family="${escapeMarkup(mapFont)}" font-size="12" fill="${ink}" color="${ink}"`;
  const paper = `<rect width="100%" height="100%" fill="${background}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${font}>${paper}${body}</svg>`;
}

/** The page's charts, one below the other. */
export function chartsSvg(title: string, boxes: { label: string; svg: SVGSVGElement }[]): string {
  let y = 30;
  let width = 400;
  const parts = [svgTitle(title)];
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
  return svgOf(width, y, parts.join(""));
}

/** The charts of figures, each under its caption. */
export const figuresSvg = (title: string, charts: SVGSVGElement[]): string =>
  chartsSvg(
    title,
    charts.map((svg) => ({ label: svg.closest("figure")?.querySelector("figcaption")?.textContent ?? "", svg })),
  );
