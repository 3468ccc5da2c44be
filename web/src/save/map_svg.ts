// A map as SVG: vector labels around an embedded picture of one pixel per cell.
import { inks, type Scale } from "../colors";
import {
  axisLabel,
  cellText,
  columnLabel,
  hasText,
  labelledColumns,
  type MapLayout,
  mapLayout,
  positionStep,
  rowStep,
} from "../map/heatmap_draw";
import type { Matrix } from "../map/matrix";
import { Tiles } from "../map/tiles";
import { escapeMarkup, svgText, titled } from "./svg";

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

function labelsSvg(m: Matrix, { left, top, size }: Place, layout: MapLayout): string {
  const { turned } = layout;
  const every = rowStep(size);
  const soft = `fill="${inks().soft}"`;
  const rowTitle = `← ${escapeMarkup(m.rowTitle ?? "query")}`;
  const out = [
    svgText(left, 10, `${m.colTitle ?? "key"} →`, soft),
    `<text transform="translate(16 ${top}) rotate(-90)" text-anchor="end" ${soft}>${rowTitle}</text>`,
  ];
  m.rowLabels.forEach((_, i) => {
    if (i % every) return;
    out.push(
      svgText(left - 7, top + (i + 0.5) * size, axisLabel(m, m.rowLabels, i, every), `text-anchor="end" ${central}`),
    );
  });
  for (let j = 0; j < m.cols; j += labelledColumns(m, layout, size)) {
    const x = left + (j + 0.5) * size;
    const y = top - 8;
    out.push(
      svgText(
        x,
        y,
        columnLabel(m, layout, j, size),
        turned ? `transform="rotate(-60 ${x} ${y})"` : 'text-anchor="middle"',
      ),
    );
  }
  const step = turned ? 0 : positionStep(m, size);
  for (let j = 0; step && j < m.cols; j += step)
    out.push(svgText(left + (j + 0.5) * size, top - 24, String(j * (m.pool ?? 1)), `text-anchor="middle" ${soft}`));
  return out.join("");
}

/** The numbers of a small map, in its cells. */
function numbersSvg(m: Matrix, tiles: Tiles, { left, top, size }: Place): string {
  if (m.cols > 24 || m.rows > 24 || size < 24) return "";
  const all = Array.from(m.values, (v) => (hasText(v) ? cellText(v) : ""));
  const font = all.some((text) => text.length > 4) ? 7.5 : 9; // so that the longest fits its cell
  const number = (text: string, k: number): string => {
    const [i, j] = [Math.floor(k / m.cols), k % m.cols];
    const look = `font-size="${font}" text-anchor="middle" ${central} fill="${tiles.ink(i, j)}"`;
    return text && svgText(left + (j + 0.5) * size, top + (i + 0.5) * size, text, look);
  };
  return all.map(number).join("");
}

/** A map under its title and over a note on it; both are "" where they stand elsewhere. */
export function mapSvg(title: string, m: Matrix, scale: Scale, note: string): string {
  const layout = mapLayout(m);
  const size = Math.max(2, Math.min(24, Math.floor(1600 / Math.max(m.rows, m.cols))));
  const place: Place = { left: layout.left + 8, top: layout.top, size };
  const width = Math.max(420, place.left + m.cols * size + layout.right + 8);
  const tiles = new Tiles(m, scale);
  const body = cellsSvg(m, tiles, place) + labelsSvg(m, place, layout) + numbersSvg(m, tiles, place);
  const height = place.top + m.rows * size + 4;
  return titled(title, { width, height }, body, note);
}
