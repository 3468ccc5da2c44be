// Charts of the lab: predictions as lines, measurements as dots with bars.
import * as Plot from "@observablehq/plot";
import { useMemo, useRef } from "preact/hooks";
import type { LabAxis, LabPlot } from "../api";
import { Chart } from "../chart";
import { inks, seriesColor } from "../colors";
import { Formula, setFormulas } from "./formula";

interface Dot {
  x: number;
  y: number;
  low: number;
  high: number;
  name: string;
}

const finite = (...v: number[]) => v.every(Number.isFinite);

/** The points of a series that can be drawn on the plot's axes. */
function dotsOf(p: LabPlot, i: number): Dot[] {
  const { x, y, low, high, name } = p.series[i];
  return x
    .map((at, k) => ({ x: at, y: y[k] ?? NaN, low: low[k] ?? NaN, high: high[k] ?? NaN, name }))
    .filter((d) => finite(d.x, d.y) && (!p.x.log || d.x > 0) && (!p.y.log || d.y > 0));
}
const allDots = (p: LabPlot): Dot[] => p.series.flatMap((_, i) => dotsOf(p, i));
const colorOf = (p: LabPlot, i: number): string => seriesColor(p.series[i].color >= 0 ? p.series[i].color : i);

type Domain = [number, number];

/** The axis' own limits, else those of the values with a little room. */
function domainOf(values: number[], axis: LabAxis): Domain {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v) || (axis.log && v <= 0)) continue;
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  if (low > high) [low, high] = axis.log ? [0.1, 1] : [0, 1];
  if (low === high) [low, high] = axis.log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  if (axis.log) {
    const wide = (high / low) ** 0.02;
    return [axis.low ?? low / wide, axis.high ?? high * wide];
  }
  const pad = 0.03 * (high - low);
  return [axis.low ?? low - pad, axis.high ?? high + pad];
}

function tick(v: number): string {
  const odd = v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e6);
  return odd ? v.toExponential(0) : String(Number(v.toPrecision(6)));
}

function scaleOf(axis: LabAxis, domain: Domain, few: boolean): Plot.ScaleOptions {
  const common = { label: axis.title || null, domain, grid: true };
  if (!axis.log) return { ...common, type: "linear", ticks: few ? 5 : undefined };
  const decades = Math.ceil(Math.log10(domain[1] / domain[0]));
  return { ...common, type: "log", tickFormat: tick, ticks: Math.min(6, decades + 1) };
}

function guideMarks({ at, label, vertical }: LabPlot["guides"][number]): Plot.Markish[] {
  const look = { strokeDasharray: "4 3", strokeOpacity: 0.6 };
  const text = { text: () => label, fontSize: 11 };
  if (vertical)
    return [
      Plot.ruleX([at], look),
      label ? Plot.text([at], { x: at, frameAnchor: "top", dx: 4, textAnchor: "start", ...text }) : null,
    ];
  return [
    Plot.ruleY([at], look),
    label ? Plot.text([at], { y: at, frameAnchor: "right", dy: -7, textAnchor: "end", ...text }) : null,
  ];
}

function seriesMarks(p: LabPlot, i: number): Plot.Markish[] {
  const { line, dashed, dots, low } = p.series[i];
  const data = dotsOf(p, i);
  const bars = data.filter((d) => finite(d.low, d.high));
  const stroke = colorOf(p, i);
  const place = { x: "x", y: "y" };
  return [
    line ? Plot.line(data, { ...place, stroke, strokeWidth: 2, strokeDasharray: dashed ? "6 4" : undefined }) : null,
    low.length ? Plot.ruleX(bars, { x: "x", y1: "low", y2: "high", stroke }) : null,
    dots ? Plot.dot(data, { ...place, fill: stroke, stroke: inks().background, strokeWidth: 1, r: 4 }) : null,
  ];
}

function options(p: LabPlot, x: Domain, y: Domain, width: number): Plot.PlotOptions {
  const title = (d: Dot) => `${d.name}\n${p.x.title}: ${d.x.toPrecision(4)}\n${p.y.title}: ${d.y.toPrecision(4)}`;
  return {
    height: Math.min(400, Math.max(240, width * 0.46)),
    marginLeft: 60,
    marginBottom: 40,
    x: scaleOf(p.x, x, width < 480),
    y: scaleOf(p.y, y, false),
    marks: [
      p.guides.map(guideMarks),
      p.series.map((_, i) => seriesMarks(p, i)),
      Plot.tip(allDots(p), Plot.pointer({ x: "x", y: "y", title })),
    ],
  };
}

/** The limits of both axes; while a slider is held they stand still, widening only where the curve would leave them. */
function useDomains(p: LabPlot, dragging: boolean): { x: Domain; y: Domain } {
  const held = useRef<{ x: Domain; y: Domain } | null>(null);
  const own = useMemo(() => {
    const dots = allDots(p);
    const heights = dots.flatMap((d) => [d.y, d.low, d.high]);
    return {
      x: domainOf(
        dots.map((d) => d.x),
        p.x,
      ),
      y: domainOf(heights, p.y),
    };
  }, [p]);
  const wider = (a: Domain, b: Domain): Domain => [Math.min(a[0], b[0]), Math.max(a[1], b[1])];
  if (!dragging || !held.current) held.current = own;
  else held.current = { x: wider(held.current.x, own.x), y: wider(held.current.y, own.y) };
  return held.current;
}

export function LabChart({ p, dragging }: { p: LabPlot; dragging: boolean }) {
  const { x, y } = useDomains(p, dragging);
  return (
    <figure class="lab-figure">
      <figcaption>
        <Formula text={p.title} />
      </figcaption>
      <Chart
        label={`${p.title}. ${p.caption}`}
        deps={[p, x.join(), y.join()]}
        options={(width) => options(p, x, y, width)}
        drawn={setFormulas}
      />
      <Legend p={p} />
      {p.caption && (
        <p class="caption">
          <Formula text={p.caption} />
        </p>
      )}
    </figure>
  );
}

function Legend({ p }: { p: LabPlot }) {
  if (p.series.filter((s) => s.name).length < 2) return null;
  const sign = (s: LabPlot["series"][number]) => (s.line ? (s.dashed ? "stroke dashed" : "stroke") : "dot");
  return (
    <p class="legend">
      {p.series.map(
        (s, i) =>
          s.name && (
            <span>
              <span class={sign(s)} style={{ color: colorOf(p, i) }} /> <Formula text={s.name} />
            </span>
          ),
      )}
    </p>
  );
}
