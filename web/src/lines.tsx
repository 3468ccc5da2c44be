// Token-to-token lines: queries left, keys right, one colour a head; opacity is the weight, whatever else is shown.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApiError, Site, Trace } from "./api";
import { chosenTheme, inks, isDark, seriesColor, systemDark } from "./colors";
import { escape, exporting, svgOf } from "./export";
import { mapFont } from "./heatmap_draw";
import { type Matrix, cell, csvLine, shorten, shortest, shown } from "./matrix";
import { state, update } from "./state";
import { failure, fetchMap, siteName } from "./trace";

const least = 22, roomy = 34; // pixels a token
const most = 64; // tokens in the window

/** The fewest keys that reach `share` of a row's weight. */
export function strongest(m: Matrix, i: number, share: number): number[] {
  const order = Array.from({ length: m.cols }, (_, j) => j).filter((j) => cell(m, i, j) > 0).sort((a, b) => cell(m, i, b) - cell(m, i, a));
  let sum = 0;
  const total = order.reduce((a, j) => a + cell(m, i, j), 0);
  const kept: number[] = [];
  for (const j of order) {
    if (sum >= share * total) break;
    kept.push(j);
    sum += cell(m, i, j);
  }
  return kept;
}

interface HeadMap {
  head: number;
  m: Matrix; // rows of the window only
}
interface Line {
  head: number;
  i: number;
  j: number;
  weight: number;
}
/** A query (left) or a key (right) that is looked at alone. */
type Focus = { side: "query" | "key"; index: number } | null;

function linesOf(maps: HeadMap[], first: number, share: number): Line[] {
  return maps.flatMap(({ head, m }) =>
    Array.from({ length: m.rows }, (_, i) => strongest(m, i, share).map((j) => ({ head, i: first + i, j, weight: cell(m, i, j) }))).flat(),
  );
}

interface Geometry {
  width: number;
  height: number;
  side: number;
  first: number;
  firstKey: number;
  rows: number;
  keys: number;
  step: number; // pixels a token
  heads: number;
}
const y = (g: Geometry, slot: number) => 30 + (slot + 0.5) * g.step;
function curve(g: Geometry, l: Line): { a: number; b: number } {
  // Keys outside the window end in a stub at its edge.
  const slot = Math.max(-0.7, Math.min(g.keys - 0.3, l.j - g.firstKey));
  // Heads run side by side, so that none hides another.
  const aside = (l.head - (g.heads - 1) / 2) * Math.min(3, (0.7 * g.step) / g.heads);
  return { a: y(g, l.i - g.first) + aside, b: y(g, slot) + aside };
}

function paint(c: CanvasRenderingContext2D, g: Geometry, lines: Line[], focus: Focus, labels: { rows: string[]; keys: string[] }): void {
  const { ink, strong, background, soft } = inks();
  c.fillStyle = background;
  c.fillRect(0, 0, g.width, g.height);
  c.lineWidth = 2;
  for (const l of lines) {
    const { a, b } = curve(g, l);
    c.strokeStyle = seriesColor(l.head);
    c.globalAlpha = Math.min(1, l.weight);
    c.beginPath();
    c.moveTo(g.side, a);
    c.bezierCurveTo(g.width / 2, a, g.width / 2, b, g.width - g.side, b);
    c.stroke();
  }
  c.globalAlpha = 1;
  c.textBaseline = "middle";
  c.font = "12px system-ui, sans-serif";
  c.fillStyle = soft;
  c.textAlign = "right";
  c.fillText("query", g.side - 8, 8);
  c.textAlign = "left";
  c.fillText("key", g.width - g.side + 8, 8);
  c.font = `13px ${mapFont}`;
  const chars = Math.max(4, Math.floor((g.side - 10) / 7.9));
  c.textAlign = "right";
  for (let i = 0; i < g.rows; i++) {
    c.fillStyle = focus?.side === "query" && focus.index === g.first + i ? strong : ink;
    c.fillText(shorten(shown(labels.rows[g.first + i]), chars), g.side - 8, y(g, i));
  }
  c.textAlign = "left";
  for (let j = 0; j < g.keys; j++) {
    c.fillStyle = focus?.side === "key" && focus.index === g.firstKey + j ? strong : ink;
    c.fillText(shorten(shown(labels.keys[g.firstKey + j]), chars), g.width - g.side + 8, y(g, j));
  }
}

function linesSvg(title: string, g: Geometry, lines: Line[], labels: { rows: string[]; keys: string[] }): string {
  const out = [`<text x="8" y="18" font-weight="bold">${escape(title)}</text><g transform="translate(0 20)">`];
  for (const l of lines) {
    const { a, b } = curve(g, l);
    out.push(`<path d="M${g.side} ${a}C${g.width / 2} ${a} ${g.width / 2} ${b} ${g.width - g.side} ${b}" fill="none" stroke="${seriesColor(l.head)}" stroke-width="2" stroke-opacity="${Math.min(1, l.weight).toFixed(3)}"/>`);
  }
  for (let i = 0; i < g.rows; i++) out.push(`<text x="${g.side - 8}" y="${y(g, i)}" text-anchor="end" dominant-baseline="central">${escape(shorten(shown(labels.rows[g.first + i]), 17))}</text>`);
  for (let j = 0; j < g.keys; j++) out.push(`<text x="${g.width - g.side + 8}" y="${y(g, j)}" dominant-baseline="central">${escape(shorten(shown(labels.keys[g.firstKey + j]), 17))}</text>`);
  return svgOf(g.width, g.height + 28, out.join("") + "</g>");
}

export function LinesView({ t, site }: { t: Trace; site: Site }) {
  const s = state.value;
  const layer = Math.min(s.l, site.layers - 1);
  const [maps, setMaps] = useState<HeadMap[]>([]);
  const [first, setFirst] = useState(0);
  const off = new Set(s.off.split(",").filter(Boolean).map(Number));
  const until = Math.min(site.queries, first + most);
  useEffect(() => {
    let current = true;
    Promise.all(Array.from({ length: site.heads }, (_, head) => fetchMap(t, { site, layer, head, rows: [first, until] }).then((m) => ({ head, m }))))
      .then((all) => current && setMaps(all))
      .catch((e: ApiError) => current && (failure.value = { message: e.message, field: "" }));
    return () => {
      current = false;
    };
  }, [t.id, site.id, layer, first]);
  const toggle = (head: number) => {
    const next = new Set(off);
    if (!next.delete(head)) next.add(head);
    update({ off: [...next].sort((a, b) => a - b).join(",") });
  };
  return (
    <>
      <div class="controls">
        {site.heads > 1 &&
          Array.from({ length: site.heads }, (_, head) => (
            <label class="head-switch">
              <input type="checkbox" checked={!off.has(head)} onChange={() => toggle(head)} />
              <span class="swatch" style={{ background: seriesColor(head) }} /> head {head}
            </label>
          ))}
        <label>
          keys reaching {s.share} % of the weight{" "}
          <input type="range" aria-label="Share of the weight" min={10} max={100} step={5} value={s.share} onInput={(e) => update({ share: Number(e.currentTarget.value) })} />
        </label>
        {site.queries > most && (
          <label>
            queries {first}–{until - 1} of {site.queries}{" "}
            <input type="range" aria-label="First query in sight" min={0} max={site.queries - most} value={first} onInput={(e) => setFirst(Number(e.currentTarget.value))} />
          </label>
        )}
      </div>
      {maps.length > 0 && <Lines t={t} site={site} layer={layer} first={first} maps={maps.filter(({ head }) => !off.has(head))} />}
    </>
  );
}

interface Props {
  t: Trace;
  site: Site;
  layer: number;
  first: number;
  maps: HeadMap[];
}

function Lines({ t, site, layer, first, maps }: Props) {
  const s = state.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [over, setOver] = useState<Focus>(null);
  const rows = maps[0]?.m.rows ?? 0;
  const focus: Focus = over ?? (s.q >= 0 ? { side: "query", index: s.q } : null);
  const all = useMemo(() => linesOf(maps, first, s.share / 100), [maps.map((x) => x.head).join(), maps[0]?.m, first, s.share]);
  const lines = all.filter((l) => !focus || (focus.side === "query" ? l.i === focus.index : l.j === focus.index));
  const labels = { rows: t.tokens[site.rows], keys: t.tokens[site.columns] };
  const fill = (a: string[], n: number) => Array.from({ length: n }, (_, i) => a[i] ?? String(i));
  labels.rows = fill(labels.rows, site.queries);
  labels.keys = fill(labels.keys, site.keys);
  const firstKey = Math.min(first, Math.max(0, site.keys - most));
  const keys = Math.min(most, site.keys - firstKey);
  const step = Math.max(least, Math.min(roomy, 480 / Math.max(rows, keys, 1)));
  const g: Geometry = { width, heads: site.heads, step, height: 34 + Math.max(rows, keys) * step, side: Math.min(150, width * 0.3), first, firstKey, rows, keys };
  const title = `${s.m}: ${siteName[site.id] ?? site.id}, layer ${layer}, lines`;
  useEffect(() => {
    const watch = new ResizeObserver(() => box.current && setWidth(box.current.clientWidth));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const target = canvas.current;
    if (!target || !width) return;
    const ratio = devicePixelRatio || 1;
    target.width = width * ratio;
    target.height = g.height * ratio;
    const c = target.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(c, g, lines, focus, labels);
    target.dataset.lines = String(lines.length);
    target.dataset.ready = "true";
    exporting.value = {
      title, caption: `${lines.length} lines: for every query the fewest keys that reach ${s.share} % of its weight.`,
      svg: () => linesSvg(title, { ...g, width: Math.max(600, width) }, lines, labels),
      csv: () => [csvLine(["head", "query", "query token", "key", "key token", "weight"]), ...lines.map((l) => csvLine([l.head, l.i, labels.rows[l.i], l.j, labels.keys[l.j], shortest(l.weight)]))].join("\n") + "\n",
    };
  }, [all, width, focus?.side, focus?.index, isDark(), chosenTheme.value, systemDark.value]);

  const tokenAt = (e: MouseEvent): Focus => {
    const r = canvas.current!.getBoundingClientRect();
    const slot = Math.floor((e.clientY - r.top - 30) / step), left = e.clientX - r.left < r.width / 2;
    if (slot < 0 || slot >= (left ? rows : keys)) return null;
    return left ? { side: "query", index: first + slot } : { side: "key", index: firstKey + slot };
  };
  return (
    <div class="lines" ref={box}>
      <p class="caption">
        {maps.length === 0 ? "Choose at least one head." : `${lines.length} lines; the stronger a line, the larger its weight. Point at a token to see it alone.`}
      </p>
      {focus && maps.length > 0 && <FocusTable maps={maps} focus={focus} first={first} labels={labels} />}
      <canvas
        ref={canvas} tabIndex={0} role="img" style={{ width: "100%", height: `${g.height}px` }}
        aria-label={`${title}. ${lines.length} lines from ${site.queries} queries to ${site.keys} keys; opacity is the weight, colour the head`}
        onMouseMove={(e) => setOver(tokenAt(e))} onMouseLeave={() => setOver(null)}
        onClick={(e) => {
          const f = tokenAt(e);
          if (f?.side === "query") update({ q: f.index === s.q ? -1 : f.index });
        }}
        onKeyDown={(e) => {
          if (e.key === "ArrowDown") update({ q: Math.min(first + rows - 1, Math.max(first - 1, s.q) + 1) });
          else if (e.key === "ArrowUp") update({ q: Math.max(first, s.q - 1) });
          else if (e.key === "Escape") update({ q: -1 });
          else return;
          e.preventDefault();
        }}
      />
    </div>
  );
}

/** Weights of the token in focus, a line a head. */
function FocusTable({ maps, focus, first, labels }: { maps: HeadMap[]; focus: NonNullable<Focus>; first: number; labels: { rows: string[]; keys: string[] } }) {
  const query = focus.side === "query";
  const of = ({ m }: HeadMap): [string, number][] => {
    if (query) {
      const i = focus.index - first;
      return i < 0 || i >= m.rows ? [] : strongest(m, i, 0.999).slice(0, 6).map((j) => [labels.keys[j], cell(m, i, j)]);
    }
    const column = Array.from({ length: m.rows }, (_, i): [string, number] => [labels.rows[first + i], cell(m, i, focus.index)]);
    return column.filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]).slice(0, 6);
  };
  return (
    <table class="bars" aria-live="polite">
      <caption>
        “{shown((query ? labels.rows : labels.keys)[focus.index])}” ({focus.index}) {query ? "looks at" : "is looked at by"}
      </caption>
      <tbody>
        {maps.map((x) => (
          <tr>
            <th><span class="swatch" style={{ background: seriesColor(x.head) }} /> head {x.head}</th>
            <td>{of(x).map(([token, v]) => <span>{shown(token)} <b>{v.toFixed(4)}</b></span>)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
