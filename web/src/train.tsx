// Train: curves of running and finished trainings, compared in one plot, and an example's map on the way.
import * as Plot from "@observablehq/plot";
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type ApiError, type MetricRecord, type Metrics, type Run, getJson, postJson, remove } from "./api";
import { Chart } from "./chart";
import { seriesColor } from "./colors";
import { type Point, best, metricsOf, points, smooth, thin } from "./curves";
import { chartsSvg, exporting } from "./export";
import { csvLine } from "./matrix";
import { Scrubber } from "./scrubber";
import { type State, state, update } from "./state";

interface Curve {
  next: number;
  records: MetricRecord[];
  training: boolean;
}

const curves = signal<Record<string, Curve>>({});
const failure = signal("");

async function poll(id: string): Promise<void> {
  for (;;) {
    const from = curves.value[id]?.next ?? 0;
    const answer = await getJson<Metrics>(`/api/runs/${encodeURIComponent(id)}/metrics?from=${from}`);
    const again = answer.next < from;
    if (answer.records.length || again || answer.training !== curves.value[id]?.training) {
      const before = again ? [] : (curves.value[id]?.records ?? []);
      curves.value = { ...curves.value, [id]: { next: answer.next, records: [...before, ...answer.records], training: answer.training } };
    }
    if (!answer.more) return;
  }
}

export async function startSmall(): Promise<string> {
  const settings = { "max-length": 12, "train-size": 4000, "validation-size": 200, epochs: 10, "eval-every": 50, "checkpoint-every": 50, keep: 50 };
  const { id } = await postJson<{ id: string }>("/api/runs", { task: "reverse", settings });
  return id;
}

/** Each run keeps its colour as others come and go: it is given by the order in which the page first saw it. */
const order: string[] = [];
function colorOf(id: string): string {
  if (!order.includes(id)) order.push(id);
  return seriesColor(order.indexOf(id));
}

const label = (metric: string) => metric.replace(/_/g, " ");
type Dot = Point & { id: string };

function RunList({ runs, chosen, refresh }: { runs: Run[]; chosen: string[]; refresh: () => void }) {
  const set = (ids: string[]) => update({ runs: ids.length ? ids.join(",") : "-" });
  const start = async () => {
    try {
      await startSmall();
      failure.value = "";
      refresh();
    } catch (e) {
      failure.value = (e as ApiError).message;
    }
  };
  return (
    <aside class="panel">
      <h2>Runs</h2>
      <p class="caption">Choose the runs to compare; each keeps its colour.</p>
      {runs.map((r) => (
        <div class="run">
          <label>
            <input type="checkbox" disabled={!!r.error} checked={chosen.includes(r.id)} onChange={() => set(chosen.includes(r.id) ? chosen.filter((x) => x !== r.id) : [...chosen, r.id])} />
            <span class="swatch" style={{ background: colorOf(r.id) }} /> {r.id}
          </label>
          {!r.error && <button type="button" class="chip" onClick={() => set([r.id])}>only</button>}
          {r.training && <em>training</em>}
          {r.training && <button type="button" class="chip" onClick={() => void remove(`/api/runs/${encodeURIComponent(r.id)}`).catch((e: ApiError) => (failure.value = e.message))}>stop</button>}
          {r.error && <span class="error">{r.error}</span>}
        </div>
      ))}
      <button type="button" class="primary" onClick={() => void start()}>Train a small reversal model</button>
      <p class="caption">or on the command line: <code>qkv train reverse</code></p>
      {failure.value && <p class="error" role="alert">{failure.value}</p>}
    </aside>
  );
}

export function Train({ runs, refresh }: { runs: Run[]; refresh: () => void }) {
  const s = state.value;
  const wanted = s.runs === "-" ? [] : s.runs ? s.runs.split(",") : runs.slice(0, 8).map((r) => r.id);
  const chosen = wanted.filter((id) => runs.some((r) => r.id === id && !r.error));
  useEffect(() => {
    let stopped = false, rounds = 0;
    const round = async () => {
      if (document.hidden) return;
      try {
        // Finished runs are asked once; a run trained elsewhere is looked at now and then.
        await Promise.all(chosen.filter((id) => rounds % 4 === 0 || curves.value[id]?.training !== false).map(poll));
        failure.value = "";
      } catch (e) {
        failure.value = (e as ApiError).message;
      }
      rounds++;
      if (!stopped) refresh();
    };
    void round();
    const timer = setInterval(() => void round(), 1500);
    return () => {
      stopped = true;
      clearInterval(timer);
    };
  }, [chosen.join()]);
  const metrics = useMemo(() => [...new Set(chosen.flatMap((id) => metricsOf(curves.value[id]?.records ?? [])))], [curves.value, chosen.join()]);
  const metric = metrics.includes(s.y) ? s.y : (metrics.find((k) => k === "validation loss") ?? metrics.find((k) => k.endsWith("loss")) ?? metrics[0]);
  const scrubbed = runs.find((r) => r.id === chosen[0] && r.checkpoints.length > 0) ?? runs.find((r) => chosen.includes(r.id) && r.checkpoints.length > 0);
  return (
    <main class="train">
      <RunList runs={runs} chosen={chosen} refresh={refresh} />
      <section class={scrubbed ? "picture two" : "picture"}>
        {metric ? <Curves chosen={chosen} metrics={metrics} metric={metric} mark={scrubbed} /> : <p class="empty">No figures yet. They appear here as soon as a training writes them.</p>}
        {scrubbed && (
          <div>
            {chosen.length > 1 && (
              <label class="which">
                Example of{" "}
                <select aria-label="Run of the example" value={scrubbed.id} onChange={(e) => update({ runs: [e.currentTarget.value, ...chosen.filter((x) => x !== e.currentTarget.value)].join(","), k: -1 })}>
                  {chosen.map((id) => <option value={id}>{id}</option>)}
                </select>
              </label>
            )}
            <Scrubber run={scrubbed} key={scrubbed.id} />
          </div>
        )}
      </section>
    </main>
  );
}

function Curves({ chosen, metrics, metric, mark }: { chosen: string[]; metrics: string[]; metric: string; mark: Run | undefined }) {
  const s = state.value;
  const box = useRef<HTMLDivElement>(null);
  const whole = useMemo(() => chosen.map((id) => ({ id, all: points(curves.value[id]?.records ?? [], metric, s.axis) })), [curves.value, chosen.join(), metric, s.axis]);
  const many = whole.some((w) => w.all.length > 60);
  const named = (id: string, p: Point[]): Dot[] => p.map((x) => ({ ...x, id }));
  const finite = (d: Dot) => Number.isFinite(d.value) && (!s.log || d.value > 0);
  const data = whole.flatMap(({ id, all }) => named(id, thin(all, 600))).filter(finite);
  const lines = many && s.half > 0 ? whole.flatMap(({ id, all }) => named(id, thin(smooth(all, s.half), 600))).filter(finite) : data;
  const broken = whole.flatMap(({ id, all }) => named(id, all)).filter((d) => !Number.isFinite(d.value));
  const bests = whole.flatMap(({ id, all }) => { const b = best(all, metric); return b ? named(id, [b]) : []; }).filter(finite);
  const here = s.axis === "step" && mark ? (s.k >= 0 ? s.k : mark.checkpoints[mark.checkpoints.length - 1]) : null;
  const bottom = data.length ? Math.min(...data.map((d) => d.value)) : 0;
  const title = `${label(metric)} of ${chosen.join(", ")}`;
  const last = bests.map((b) => `${b.id} ${b.value.toPrecision(4)} at update ${b.step}`).join("; ");
  const caption = `Best so far (ringed): ${last || "none"}.${many && s.half > 0 ? ` Thin lines are the values, thick ones their running average with a half-life of ${s.half} points.` : ""}`;
  useEffect(() => {
    exporting.value = {
      title, caption,
      svg: () => chartsSvg(title, [{ label: "", svg: box.current!.querySelector("svg")! }]),
      csv: () => [csvLine(["run", s.axis, "step", metric]), ...whole.flatMap(({ id, all }) => all.map((p) => csvLine([id, p.x, p.step, Number.isFinite(p.value) ? p.value : "nan"])))].join("\n") + "\n",
    };
  }, [whole, title]);
  const stroke = (d: Dot) => colorOf(d.id);
  return (
    <div ref={box}>
      <div class="controls">
        <label>
          Show{" "}
          <select id="metric" value={metric} onChange={(e) => update({ y: e.currentTarget.value })}>{metrics.map((k) => <option value={k}>{label(k)}</option>)}</select>
        </label>
        <label>
          over{" "}
          <select id="axis" value={s.axis} onChange={(e) => update({ axis: e.currentTarget.value as State["axis"] })}>
            <option value="step">updates</option><option value="epoch">epochs</option><option value="seconds">seconds</option>
          </select>
        </label>
        <label><input type="checkbox" checked={s.log} onChange={() => update({ log: !s.log })} /> logarithmic</label>
        {many && <label>smooth <input type="range" aria-label="Half-life of the smoothing" min={0} max={100} value={s.half} onInput={(e) => update({ half: Number(e.currentTarget.value) })} /></label>}
      </div>
      <h2>{label(metric)} <small>{chosen.length > 1 ? `${chosen.length} runs in one plot` : chosen[0]}</small></h2>
      <Chart
        label={title} deps={[curves.value, metric, s.log, s.axis, s.half, chosen.join(), here]}
        options={(width) => ({
          height: Math.min(420, Math.max(220, width * 0.6)), marginLeft: 56, marginBottom: 36,
          x: { label: { step: "update", epoch: "epoch", seconds: "seconds" }[s.axis], grid: true },
          y: { label: label(metric), grid: true, nice: true, type: s.log ? "log" : "linear", ...(metric.startsWith("validation") && /accuracy|match/.test(metric) && !s.log ? { domain: [0, 1] } : {}) },
          marks: [
            ...(here !== null ? [Plot.ruleX([here], { strokeDasharray: "3 3", strokeOpacity: 0.6 })] : []),
            many && s.half > 0 ? Plot.line(data, { x: "x", y: "value", stroke, z: "id", strokeOpacity: 0.25, strokeWidth: 1 }) : Plot.dot(data, { x: "x", y: "value", fill: stroke, r: 2.5 }),
            Plot.line(lines, { x: "x", y: "value", stroke, z: "id", strokeWidth: 2 }),
            Plot.dot(bests, { x: "x", y: "value", stroke, r: 6, strokeWidth: 1.5 }),
            Plot.text(broken, { x: "x", y: () => bottom, text: () => "✕", fill: stroke, title: (d: Dot) => `not a number at update ${d.step}` }),
            Plot.tip(data, Plot.pointer({ x: "x", y: "value", title: (d: Dot) => `${d.id}\nupdate ${d.step}\n${d.value.toPrecision(5)}` })),
          ],
        })}
      />
      {chosen.length > 1 && <p class="legend">{chosen.map((id) => <span><span class="swatch" style={{ background: colorOf(id) }} /> {id}</span>)}</p>}
      <p class="caption">{caption}</p>
      <details>
        <summary>The last values</summary>
        <table>
          <tbody>
            {whole.map(({ id, all }) => {
              const end = all[all.length - 1];
              return <tr><th>{id}</th><td>{end ? `update ${end.step}` : "—"}</td><td class="n">{end ? end.value.toPrecision(6) : ""}</td></tr>;
            })}
          </tbody>
        </table>
      </details>
    </div>
  );
}
