// A map as SVG: vector labels around an embedded picture of one pixel per cell.
import { inks, type Scale } from "../colors";
import { cellText, hasText, labelStep, labelText, mapLayout } from "../map/heatmap_draw";
import { caption, cell, type Matrix } from "../map/matrix";
import { Tiles } from "../map/tiles";
import { escapeMarkup, svgOf, svgText, svgTitle } from "./svg";

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

interface Place {
  left: number;
  top: number;
  size: number; // pixels per cell
}

const central = 'dominant-baseline="central"';

/** The cells, masked ones hatched below the picture, and the frame around them. */
function cellsSvg(m: Matrix, tiles: Tiles, { left, top, size }: Place): string {
  const { hatch, grid } = inks();
  const area = `x="${left}" y="${top}" width="${m.cols * size}" height="${m.rows * size}"`;
  const stripes = `<path d="M-1 7L7 -1" stroke="${hatch}"/>`;
  return [
    `<defs><pattern id="h" width="6" height="6" patternUnits="userSpaceOnUse">${stripes}</pattern></defs>`,
    `<rect ${area} fill="url(#h)"/>`,
    `<image id="cells" ${area} preserveAspectRatio="none" style="image-rendering:pixelated" href="${tiles.dataUrl()}"/>`,
    `<rect ${area} fill="none" stroke="${grid}"/>`,
  ].join("");
}

function labelsSvg(m: Matrix, { left, top, size }: Place, turned: boolean): string {
  const every = labelStep(size);
  const soft = `fill="${inks().soft}"`;
  const rowTitle = `← ${escapeMarkup(m.rowTitle ?? "query")}`;
  const out = [
    svgText(left, 38, `${m.colTitle ?? "key"} →`, soft),
    `<text transform="translate(16 ${top}) rotate(-90)" text-anchor="end" ${soft}>${rowTitle}</text>`,
  ];
  m.rowLabels.forEach((t, i) => {
    if (i % every) return;
    out.push(svgText(left - 7, top + (i + 0.5) * size, labelText(t), `text-anchor="end" ${central}`));
  });
  m.colLabels.forEach((t, j) => {
    if (j % every) return;
    const x = left + (j + 0.5) * size;
    const y = top - 8;
    out.push(svgText(x, y, labelText(t), turned ? `transform="rotate(-60 ${x} ${y})"` : 'text-anchor="middle"'));
  });
  return out.join("");
}

/** The numbers of a small map, in its cells. */
function numbersSvg(m: Matrix, tiles: Tiles, { left, top, size }: Place): string {
  if (m.cols > 24 || m.rows > 24 || size < 24) return "";
  const out: string[] = [];
  for (let i = 0; i < m.rows; i++) {
    for (let j = 0; j < m.cols; j++) {
      const v = cell(m, i, j);
      if (!hasText(v)) continue;
      const look = `font-size="9" text-anchor="middle" ${central} fill="${tiles.ink(i, j)}"`;
      out.push(svgText(left + (j + 0.5) * size, top + (i + 0.5) * size, cellText(v), look));
    }
  }
  return out.join("");
}

export function mapSvg(title: string, m: Matrix, scale: Scale): string {
  const layout = mapLayout(m);
  const size = Math.max(2, Math.min(24, Math.floor(1600 / Math.max(m.rows, m.cols))));
  const place: Place = { left: layout.left + 8, top: layout.top + 28, size };
  const width = Math.max(420, place.left + m.cols * size + layout.right + 8);
  const bottom = place.top + m.rows * size;
  const words = wrapped(caption(m), Math.floor((width - 16) / 7.3));
  const tiles = new Tiles(m, scale);
  const body = [
    svgTitle(title),
    cellsSvg(m, tiles, place),
    labelsSvg(m, place, layout.turned),
    numbersSvg(m, tiles, place),
    ...words.map((line, k) => svgText(8, bottom + 22 + 18 * k, line)),
  ];
  return svgOf(width, bottom + 12 + words.length * 18, body.join(""));
}
