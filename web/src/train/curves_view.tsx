// One metric of several runs in one plot: values, their running average, the best ones ringed.
import * as Plot from "@observablehq/plot";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Run } from "../api";
import { Chart } from "../chart";
import { csv } from "../save/csv";
import { exporting } from "../save/files";
import { chartsSvg } from "../save/svg";
import { Select } from "../select";
import { type State, state, update } from "../state";
import { best, type Point, points, smooth, thin } from "./curves";
import { figureName, figureText } from "./figures";
import { curves, recordsOf } from "./records";
import { colorOf } from "./run_list";

interface Values {
  id: string;
  all: Point[];
}
type Dot = Point & { id: string };

const named = (id: string, values: Point[]): Dot[] => values.map((p) => ({ ...p, id }));
const columns = 600; // of pixels, more points cannot be told apart
/** With few values every one is a dot; with many, their average is drawn over them. */
const isSmoothed = (runs: Values[]): boolean => isLong(runs) && state.value.halfLife > 0;
const isLong = (runs: Values[]): boolean => runs.some((r) => r.all.length > 60);

interface Shown {
  raw: Dot[];
  lines: Dot[];
  bests: Dot[];
  broken: Dot[]; // not a number
}

function shownOf(runs: Values[], metric: string): Shown {
  const { logarithmic, halfLife } = state.value;
  const drawable = (d: Dot) => Number.isFinite(d.value) && (!logarithmic || d.value > 0);
  const each = (of: (all: Point[]) => Point[]) => runs.flatMap(({ id, all }) => named(id, of(all)));
  const raw = each((all) => thin(all, columns)).filter(drawable);
  return {
    raw,
    lines: isSmoothed(runs) ? each((all) => thin(smooth(all, halfLife), columns)).filter(drawable) : raw,
    bests: each((all) => [best(all, metric)].filter((p) => p !== undefined)).filter(drawable),
    broken: each((all) => all).filter((d) => !Number.isFinite(d.value)),
  };
}

/** The chart's marks; `here` is the step of the map beside it. */
function marksOf({ raw, lines, bests, broken }: Shown, smoothed: boolean, here: number | null): Plot.Markish[] {
  const stroke = (d: Dot) => colorOf(d.id);
  const place = { x: "x", y: "value" };
  const bottom = raw.length ? Math.min(...raw.map((d) => d.value)) : 0;
  const title = (d: Dot) => `${d.id}\nstep ${d.step}\n${d.value.toPrecision(5)}`;
  return [
    here === null ? null : Plot.ruleX([here], { strokeDasharray: "3 3", strokeOpacity: 0.6 }),
    smoothed
      ? Plot.line(raw, { ...place, stroke, z: "id", strokeOpacity: 0.25, strokeWidth: 1 })
      : Plot.dot(raw, { ...place, fill: stroke, r: 2.5 }),
    Plot.line(lines, { ...place, stroke, z: "id", strokeWidth: 2 }),
    Plot.dot(bests, { ...place, stroke, r: 6, strokeWidth: 1.5 }),
    Plot.text(broken, {
      x: "x",
      y: () => bottom,
      text: () => "✕",
      fill: stroke,
      title: (d: Dot) => `not a number at step ${d.step}`,
    }),
    Plot.tip(raw, Plot.pointer({ ...place, title })),
  ];
}

const axes: [State["axis"], string, string][] = [
  ["step", "steps", "step"],
  ["epoch", "epochs", "epoch"],
  ["seconds", "seconds", "seconds"],
];

/** One value alone stands in the middle of its axis: from nothing else an axis gets no readable ticks. */
const around = (values: number[]): { domain?: [number, number] } =>
  values.length > 0 && values[0] > 0 && values.every((v) => v === values[0]) ? { domain: [0, 2 * values[0]] } : {};

function options(metric: string, name: string, width: number, shown: Shown, marks: Plot.Markish[]): Plot.PlotOptions {
  const { logarithmic, axis } = state.value;
  const share = metric.startsWith("validation") && /accuracy|match/.test(metric) && !logarithmic;
  return {
    height: Math.min(420, Math.max(220, width * 0.6)),
    marginLeft: 56,
    marginBottom: 36,
    x: { label: axes.find(([name]) => name === axis)![2], grid: true, ...around(shown.raw.map((d) => d.x)) },
    y: {
      label: name,
      grid: true,
      nice: true,
      type: logarithmic ? "log" : "linear",
      ...(share ? { domain: [0, 1] } : logarithmic ? {} : around(shown.raw.map((d) => d.value))),
    },
    marks,
  };
}

const curvesCsv = (runs: Values[], metric: string): string =>
  csv([
    ["run", state.value.axis, "step", metric],
    ...runs.flatMap(({ id, all }) => all.map((p) => [id, p.x, p.step, Number.isFinite(p.value) ? p.value : "nan"])),
  ]);

function caption(bests: Dot[], metric: string, smoothed: boolean): string {
  const list = bests.map((b) => `${b.id} ${figureText(metric, b.value)} at step ${b.step}`).join("; ") || "none";
  if (!smoothed) return `Best so far (ringed): ${list}.`;
  const average = `their running average with a half-life of ${state.value.halfLife} points`;
  return `Best so far (ringed): ${list}. Thin lines are the values, thick ones ${average}.`;
}

interface Props {
  chosen: Run[]; // all of one task
  metrics: string[];
  metric: string;
  mark: Run | undefined; // the run whose map is shown beside
  main: boolean; // the one that is saved
}

export function CurvesView({ chosen: list, metrics, metric, mark, main }: Props) {
  const chosen = list.map((r) => r.id);
  const name = figureName(metric, list[0]);
  const { axis, logarithmic, halfLife, trainingStep } = state.value;
  const box = useRef<HTMLDivElement>(null);
  const runs = useMemo(
    () => chosen.map((id): Values => ({ id, all: points(recordsOf(id), metric, axis) })),
    [curves.value, chosen.join(), metric, axis],
  );
  const smoothed = isSmoothed(runs);
  const shown = shownOf(runs, metric);
  const step = trainingStep >= 0 ? trainingStep : mark?.checkpoints[mark.checkpoints.length - 1];
  const here = axis === "step" && mark ? (step ?? null) : null;
  const title = `${name} of ${chosen.join(", ")}`;
  const text = caption(shown.bests, metric, smoothed);
  useEffect(() => {
    if (!main) return;
    const chart = () => {
      const { current: all } = box;
      return { label: "", svg: all!.querySelector("svg")!, legend: all!.querySelector(".legend") };
    };
    exporting.value = {
      title,
      caption: text,
      svg: (bare) => chartsSvg(title, [chart()], bare),
      csv: () => curvesCsv(runs, metric),
    };
  }, [runs, title]);
  return (
    <div ref={box}>
      <CurveControls metrics={metrics} metric={metric} long={isLong(runs)} run={list[0]} main={main} />
      <h2>
        {name} <small>{about(list)}</small>
      </h2>
      <Chart
        label={title}
        deps={[curves.value, metric, logarithmic, axis, halfLife, chosen.join(), here]}
        options={(width) => options(metric, name, width, shown, marksOf(shown, smoothed, here))}
      />
      {chosen.length > 1 && (
        <p class="legend">
          {chosen.map((id) => (
            <span>
              <span class="swatch" style={{ background: colorOf(id) }} /> {id}
            </span>
          ))}
        </p>
      )}
      <p class="caption">{text}</p>
      <ValueTable runs={runs} metric={metric} />
    </div>
  );
}

/** "task reverse, 2 runs of the comparison compare-reverse" */
function about(list: Run[]): string {
  const groups = new Set(list.map((r) => r.group ?? ""));
  const [group] = groups;
  const of = groups.size === 1 && group ? ` of ${group}` : "";
  return `task ${list[0].task}, ${list.length > 1 ? `${list.length} runs${of} in one plot` : list[0].id}`;
}

interface ControlProps {
  metrics: string[];
  metric: string;
  long: boolean;
  run: Run;
  main: boolean;
}

function CurveControls({ metrics, metric, long, run, main }: ControlProps) {
  const { axis, logarithmic, halfLife } = state.value;
  const choice = (
    <label>
      Show{" "}
      <Select
        id={main ? "metric" : undefined}
        value={metric}
        options={metrics.map((k) => [k, figureName(k, run)] as const)}
        onChange={(k) => update({ metric: k })}
      />
    </label>
  );
  if (!main) return <div class="controls">{choice}</div>;
  return (
    <div class="controls">
      {choice}
      <label>
        over{" "}
        <Select
          id="axis"
          value={axis}
          options={axes.map(([name, text]) => [name, text] as const)}
          onChange={(name) => update({ axis: name })}
        />
      </label>
      <label>
        <input type="checkbox" checked={logarithmic} onChange={() => update({ logarithmic: !logarithmic })} />{" "}
        logarithmic
      </label>
      {long && (
        <label>
          smooth{" "}
          <input
            type="range"
            aria-label="Half-life of the smoothing"
            min={0}
            max={100}
            value={halfLife}
            onInput={(e) => update({ halfLife: Number(e.currentTarget.value) })}
          />
        </label>
      )}
    </div>
  );
}

/** Best and last value of each run: a comparison in numbers. */
function ValueTable({ runs, metric }: { runs: Values[]; metric: string }) {
  return (
    <details open={runs.length > 1}>
      <summary>The numbers</summary>
      <div class="scroll">
        <table class="figures-table">
          <thead>
            <tr>
              <th>run</th>
              <th class="n">best</th>
              <th class="n">at step</th>
              <th class="n">last</th>
              <th class="n">at step</th>
            </tr>
          </thead>
          <tbody>
            {runs.map(({ id, all }) => {
              const end = all[all.length - 1];
              const top = best(all, metric);
              return (
                <tr>
                  <th scope="row">{id}</th>
                  <td class="n">{top ? figureText(metric, top.value) : "—"}</td>
                  <td class="n">{top?.step ?? ""}</td>
                  <td class="n">{end ? figureText(metric, end.value) : "—"}</td>
                  <td class="n">{end?.step ?? ""}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </details>
  );
}
