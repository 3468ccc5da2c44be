// Token-to-token lines as drawings: which lines there are, where they run, on a canvas and as SVG.
import { inks, seriesColor } from "../colors";
import { mapFont } from "../map/heatmap_draw";
import { cell, keysByWeight, type Matrix } from "../map/matrix";
import { shorten, shown } from "../map/tokens";
import { svgText, titled } from "../save/svg";

export const mostTokens = 64; // in the window
const least = 22; // pixels per token
const roomy = 34;
const perCharacter = 7.9; // pixels of a label

/** Which keys of a query get a line: the fewest that reach a share of its weight (in per cent), or the -n strongest. */
export function strongest(m: Matrix, i: number, limit: number): number[] {
  const order = keysByWeight(m, i).filter((j) => cell(m, i, j) > 0);
  if (limit < 0) return order.slice(0, -limit);
  const share = limit / 100;
  const total = order.reduce((a, j) => a + cell(m, i, j), 0);
  const kept: number[] = [];
  let sum = 0;
  for (const j of order) {
    if (sum >= share * total) break;
    kept.push(j);
    sum += cell(m, i, j);
  }
  return kept;
}

export interface HeadMap {
  head: number;
  m: Matrix; // rows of the window only
}
export interface Line {
  head: number;
  i: number;
  j: number;
  weight: number;
}
/** A query (left) or a key (right) that is looked at alone. */
export type Focus = { side: "query" | "key"; index: number } | null;
export interface Labels {
  rows: string[];
  keys: string[];
}

export function linesOf(maps: HeadMap[], first: number, limit: number): Line[] {
  const ofRow = ({ head, m }: HeadMap, i: number) =>
    strongest(m, i, limit).map((j) => ({ head, i: first + i, j, weight: cell(m, i, j) }));
  return maps.flatMap((map) => Array.from({ length: map.m.rows }, (_, i) => ofRow(map, i)).flat());
}

export interface Geometry {
  width: number;
  height: number;
  side: number; // pixels for labels
  first: number; // query in sight
  firstKey: number;
  rows: number;
  keys: number;
  step: number; // pixels per token
  heads: number;
}

export function geometryOf(width: number, heads: number, first: number, rows: number, labels: Labels): Geometry {
  const allKeys = labels.keys.length;
  const firstKey = Math.min(first, Math.max(0, allKeys - mostTokens));
  const keys = Math.min(mostTokens, allKeys - firstKey);
  const step = Math.max(least, Math.min(roomy, 480 / Math.max(rows, keys, 1)));
  const height = 34 + Math.max(rows, keys) * step;
  const inSight = [...labels.rows.slice(first, first + rows), ...labels.keys.slice(firstKey, firstKey + keys)];
  const longest = inSight.reduce((a, token) => Math.max(a, shown(token).length), "query".length);
  const side = Math.min(150, width * 0.3, 20 + perCharacter * longest);
  return { width, heads, step, height, side, first, firstKey, rows, keys };
}

const top = 30;
const y = (g: Geometry, slot: number) => top + (slot + 0.5) * g.step;

/** The token at a point of the drawing. */
export function tokenAt(g: Geometry, px: number, py: number): Focus {
  const slot = Math.floor((py - top) / g.step);
  const left = px < g.width / 2;
  if (slot < 0 || slot >= (left ? g.rows : g.keys)) return null;
  return left ? { side: "query", index: g.first + slot } : { side: "key", index: g.firstKey + slot };
}

/** Heights at which a line begins and ends. */
function curve(g: Geometry, l: Line): { a: number; b: number } {
  // Keys outside the window end in a stub at its edge.
  const slot = Math.max(-0.7, Math.min(g.keys - 0.3, l.j - g.firstKey));
  // Heads run side by side, so that none hides another.
  const aside = (l.head - (g.heads - 1) / 2) * Math.min(3, (0.7 * g.step) / g.heads);
  return { a: y(g, l.i - g.first) + aside, b: y(g, slot) + aside };
}

function paintLabels(c: CanvasRenderingContext2D, g: Geometry, focus: Focus, labels: Labels): void {
  const { ink, strong, soft } = inks();
  const right = g.width - g.side + 8;
  const chars = Math.max(4, Math.floor((g.side - 10) / perCharacter));
  const column = (side: "query" | "key", x: number, first: number, n: number, tokens: string[]) => {
    c.textAlign = side === "query" ? "right" : "left";
    c.font = "12px system-ui, sans-serif";
    c.fillStyle = soft;
    c.fillText(side, x, 8);
    c.font = `13px ${mapFont}`;
    for (let k = 0; k < n; k++) {
      c.fillStyle = focus?.side === side && focus.index === first + k ? strong : ink;
      c.fillText(shorten(shown(tokens[first + k]), chars), x, y(g, k));
    }
  };
  c.textBaseline = "middle";
  column("query", g.side - 8, g.first, g.rows, labels.rows);
  column("key", right, g.firstKey, g.keys, labels.keys);
}

export interface Drawn {
  g: Geometry;
  lines: Line[];
  labels: Labels;
  top: number; // the weight of a line that is fully seen
}
const opacity = (l: Line, top: number) => Math.min(1, l.weight / top);
/** A token looked at alone shows its lines, however weak they are beside those of others. */
const faintest = 0.3;

export function paint(c: CanvasRenderingContext2D, { g, lines, labels, top }: Drawn, focus: Focus): void {
  c.fillStyle = inks().background;
  c.fillRect(0, 0, g.width, g.height);
  c.lineWidth = 2;
  for (const l of lines) {
    const { a, b } = curve(g, l);
    c.strokeStyle = seriesColor(l.head);
    c.globalAlpha = Math.max(focus ? faintest : 0, opacity(l, top));
    c.beginPath();
    c.moveTo(g.side, a);
    c.bezierCurveTo(g.width / 2, a, g.width / 2, b, g.width - g.side, b);
    c.stroke();
  }
  c.globalAlpha = 1;
  paintLabels(c, g, focus, labels);
}

export function linesSvg(title: string, { g, lines, labels, top }: Drawn): string {
  const middle = g.width / 2;
  const right = g.width - g.side;
  const central = 'dominant-baseline="central"';
  const text = (token: string) => shorten(shown(token), 17);
  const out = ['<g fill="none">'];
  for (const l of lines) {
    const { a, b } = curve(g, l);
    const look = `stroke="${seriesColor(l.head)}" stroke-width="2" stroke-opacity="${opacity(l, top).toFixed(3)}"`;
    out.push(`<path d="M${g.side} ${a}C${middle} ${a} ${middle} ${b} ${right} ${b}" ${look}/>`);
  }
  out.push("</g><g>");
  for (let i = 0; i < g.rows; i++)
    out.push(svgText(g.side - 8, y(g, i), text(labels.rows[g.first + i]), `text-anchor="end" ${central}`));
  for (let j = 0; j < g.keys; j++) out.push(svgText(right + 8, y(g, j), text(labels.keys[g.firstKey + j]), central));
  return titled(title, g, `${out.join("")}</g>`);
}
