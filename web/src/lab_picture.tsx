// Pictures of the lab: predictions as lines, measurements as dots with bars, weights as maps.
import * as Plot from "@observablehq/plot";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { LabAxis, LabMap, LabMaps, LabPlot } from "./api";
import { Chart } from "./chart";
import { chosenTheme, inks, isDark, seriesColor, systemDark } from "./colors";
import { Tiles, drawMap, mapLayout, mapSize } from "./heatmap_draw";
import type { Matrix } from "./matrix";

interface Mark {
  x: number;
  y: number;
  low: number;
  high: number;
  name: string;
}

const plain = (v: number): string => (v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e6) ? v.toExponential(0) : String(Number(v.toPrecision(6))));
const scaleOf = (axis: LabAxis, domain: Domain, few: boolean) => ({
  label: axis.title, type: axis.log ? ("log" as const) : ("linear" as const), domain, grid: true, ...(axis.log ? { tickFormat: plain, ticks: Math.min(6, Math.ceil(Math.log10(domain[1] / domain[0])) + 1) } : { ticks: few ? 5 : undefined }),
});

const finite = (...v: (number | null | undefined)[]) => v.every((x) => typeof x === "number" && Number.isFinite(x));

function marksOf(p: LabPlot, i: number): Mark[] {
  const s = p.series[i];
  return s.x
    .map((x, k) => ({ x, y: s.y[k] as number, low: s.low[k] ?? NaN, high: s.high[k] ?? NaN, name: s.name }))
    .filter((d) => finite(d.x, d.y) && (!p.x.log || d.x > 0) && (!p.y.log || d.y > 0));
}

type Domain = [number, number];
const spread = (values: number[], axis: LabAxis): Domain => {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v) || (axis.log && v <= 0)) continue;
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  if (low > high) [low, high] = axis.log ? [0.1, 1] : [0, 1];
  if (low === high) [low, high] = axis.log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  if (axis.log) {
    const wide = Math.pow(high / low, 0.02);
    return [axis.low ?? low / wide, axis.high ?? high * wide];
  }
  const pad = 0.03 * (high - low);
  return [axis.low ?? low - pad, axis.high ?? high + pad];
};

/** While a slider is held the axes stand still, widening only where the curve would leave them. */
export function LabChart({ p, dragging }: { p: LabPlot; dragging: boolean }) {
  const held = useRef<{ x: Domain; y: Domain } | null>(null);
  const own = useMemo(() => {
    const all = p.series.flatMap((_, i) => marksOf(p, i));
    return { x: spread(all.map((d) => d.x), p.x), y: spread(all.flatMap((d) => [d.y, d.low, d.high]), p.y) };
  }, [p]);
  const wider = (a: Domain, b: Domain): Domain => [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
  if (!dragging || !held.current) held.current = own;
  else held.current = { x: wider(held.current.x, own.x), y: wider(held.current.y, own.y) };
  const { x, y } = held.current;
  const named = p.series.filter((s) => s.name);
  return (
    <figure class="lab-figure">
      <figcaption>{p.title}</figcaption>
      <Chart
        label={`${p.title}. ${p.caption}`} deps={[p, x.join(), y.join()]}
        options={(width) => ({
          height: Math.min(400, Math.max(240, width * 0.46)), marginLeft: 60, marginBottom: 40,
          x: scaleOf(p.x, x, width < 480),
          y: scaleOf(p.y, y, false),
          marks: [
            ...p.guides.map((g) => (g.vertical ? Plot.ruleX([g.at], { strokeDasharray: "4 3", strokeOpacity: 0.6 }) : Plot.ruleY([g.at], { strokeDasharray: "4 3", strokeOpacity: 0.6 }))),
            ...p.guides.filter((g) => g.label).map((g) => (g.vertical ? Plot.text([g], { x: g.at, frameAnchor: "top", text: () => g.label, dx: 4, textAnchor: "start", fontSize: 11 }) : Plot.text([g], { y: g.at, frameAnchor: "right", text: () => g.label, dy: -7, textAnchor: "end", fontSize: 11 }))),
            ...p.series.flatMap((s, i) => {
              const data = marksOf(p, i), stroke = seriesColor(s.color >= 0 ? s.color : i);
              return [
                ...(s.line ? [Plot.line(data, { x: "x", y: "y", stroke, strokeWidth: 2, strokeDasharray: s.dashed ? "6 4" : undefined })] : []),
                ...(s.low.length ? [Plot.ruleX(data.filter((d) => finite(d.low, d.high)), { x: "x", y1: "low", y2: "high", stroke })] : []),
                ...(s.dots ? [Plot.dot(data, { x: "x", y: "y", fill: stroke, stroke: inks().background, strokeWidth: 1, r: 4 })] : []),
              ];
            }),
            Plot.tip(p.series.flatMap((_, i) => marksOf(p, i)), Plot.pointer({ x: "x", y: "y", title: (d: Mark) => `${d.name}\n${p.x.title}: ${d.x.toPrecision(4)}\n${p.y.title}: ${d.y.toPrecision(4)}` })),
          ],
        })}
      />
      {named.length > 1 && (
        <p class="legend">
          {p.series.map((s, i) => s.name && <span><span class={s.line ? (s.dashed ? "stroke dashed" : "stroke") : "dot"} style={{ color: seriesColor(s.color >= 0 ? s.color : i) }} /> {s.name}</span>)}
        </p>
      )}
      {p.caption && <p class="caption">{p.caption}</p>}
    </figure>
  );
}

export function matrixOf(m: LabMap): Matrix {
  const values = Float32Array.from(m.values, (v, i) => (v === null || m.hidden[i] ? NaN : v));
  const labels = (given: string[], n: number) => Array.from({ length: n }, (_, i) => given[i] ?? String(i));
  return { rows: m.rows, cols: m.columns, values, rowLabels: labels(m.row_labels, m.rows), colLabels: labels(m.column_labels, m.columns), rowTitle: m.row_title || "query", colTitle: m.column_title || "key" };
}

export const labScale = (m: LabMap) => (m.centered ? "centered" : m.low >= 0 && m.high <= 1.0001 ? "abs" : "auto") as "centered" | "abs" | "auto";

function SmallMap({ map, width }: { map: LabMap; width: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const m = useMemo(() => matrixOf(map), [map]);
  const layout = mapLayout(m);
  const size = Math.max(2, Math.min(map.rows * map.columns <= 64 ? 44 : 30, Math.floor((width - layout.left - layout.right) / m.cols)));
  const full = mapSize(m, layout, size);
  useEffect(() => {
    const ratio = devicePixelRatio || 1, target = canvas.current!;
    target.width = full.width * ratio;
    target.height = full.height * ratio;
    const c = target.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawMap(c, { tiles: new Tiles(m, labScale(map)), layout, size, left: 0, top: 0, ...full, cursor: null, pinned: -1 });
  }, [m, size, isDark(), chosenTheme.value, systemDark.value]);
  return (
    <figure class="small-map">
      <figcaption>{map.title}</figcaption>
      <canvas ref={canvas} role="img" aria-label={`${map.title}: ${m.rows} by ${m.cols} cells from ${map.low} to ${map.high}`} style={{ width: `${full.width}px`, height: `${full.height}px` }} />
    </figure>
  );
}

export function LabMapsView({ p, width }: { p: LabMaps; width: number }) {
  const each = Math.min(420, width < 560 ? width : width / Math.min(p.columns || 2, p.maps.length) - 16);
  return (
    <div class="lab-maps">
      <h3>{p.title}</h3>
      <div class="map-grid">{p.maps.map((m) => <SmallMap map={m} width={each} />)}</div>
      {p.caption && <p class="caption">{p.caption}</p>}
    </div>
  );
}
