// Train: curves of running and finished trainings, compared in one plot.
import * as Plot from "@observablehq/plot";
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, type MetricRecord, type Metrics, type Run, getJson, postJson, remove } from "./api";
import { Chart } from "./chart";
import { seriesColor } from "./colors";
import { state, update } from "./state";

interface Curve {
  next: number;
  records: MetricRecord[];
  training: boolean;
}

const curves = signal<Record<string, Curve>>({});
const failure = signal("");

async function poll(id: string): Promise<void> {
  const from = curves.value[id]?.next ?? 0;
  const answer = await getJson<Metrics>(`/api/runs/${encodeURIComponent(id)}/metrics?from=${from}`);
  const known = answer.next < from ? [] : (curves.value[id]?.records ?? []);
  curves.value = { ...curves.value, [id]: { next: answer.next, records: [...known, ...answer.records], training: answer.training } };
  if (answer.more) await poll(id);
}

/** Points of one metric of one run: x is the step. Nested objects ("validation": {"loss": …}) count as "validation loss". */
export function points(records: MetricRecord[], metric: string): { step: number; value: number }[] {
  const out: { step: number; value: number }[] = [];
  for (const r of records) {
    const value = flat(r)[metric];
    if (typeof value === "number" && typeof r.step === "number") out.push({ step: r.step, value });
  }
  return out;
}

function flat(record: MetricRecord): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(record)) {
    if (value && typeof value === "object") for (const [k, v] of Object.entries(value)) out[`${key} ${k}`] = v;
    else out[key] = value;
  }
  return out;
}

/** Average with a half-life in points, corrected for its start; a later point never changes an earlier one. */
export function smooth(values: { step: number; value: number }[], halfLife: number): { step: number; value: number }[] {
  const keep = halfLife > 0 ? Math.pow(0.5, 1 / halfLife) : 0;
  let sum = 0, weight = 0;
  return values.map(({ step, value }) => {
    sum = keep * sum + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    return { step, value: sum / weight };
  });
}

const skipped = new Set(["step", "epoch", "seconds"]);

export function Train({ runs, refresh }: { runs: Run[]; refresh: () => void }) {
  const s = state.value;
  const chosen = (s.runs ? s.runs.split(",") : runs.map((r) => r.id)).filter((id) => runs.some((r) => r.id === id));
  useEffect(() => {
    let stopped = false;
    const round = async () => {
      try {
        await Promise.all(chosen.map(poll));
        failure.value = "";
      } catch (e) {
        failure.value = (e as ApiError).message;
      }
      if (!stopped && !document.hidden) refresh();
    };
    void round();
    const timer = setInterval(() => !document.hidden && void round(), 1500);
    return () => {
      stopped = true;
      clearInterval(timer);
    };
  }, [chosen.join()]);

  const metrics = [...new Set(chosen.flatMap((id) => (curves.value[id]?.records ?? []).flatMap((r) => Object.entries(flat(r)).filter(([k, v]) => typeof v === "number" && !skipped.has(k)).map(([k]) => k))))];
  const metric = metrics.includes(s.y) ? s.y : (metrics.find((k) => k.endsWith("loss")) ?? metrics[0]);
  const color = (id: string) => seriesColor(Math.max(0, runs.findIndex((r) => r.id === id)));
  const data = chosen.flatMap((id) => points(curves.value[id]?.records ?? [], metric).map((p) => ({ ...p, id })));
  const smoothed = chosen.flatMap((id) => smooth(points(curves.value[id]?.records ?? [], metric), 10).map((p) => ({ ...p, id })));
  const many = data.length > 60 * Math.max(1, chosen.length);
  const start = async () => {
    try {
      await postJson("/api/runs", { task: "reverse", settings: {} });
      failure.value = "";
      refresh();
    } catch (e) {
      failure.value = (e as ApiError).message;
    }
  };
  return (
    <main class="train">
      <aside class="panel">
        <h2>Runs</h2>
        <p>Choose the runs to compare; a run keeps its colour.</p>
        {runs.map((r) => (
          <label class="run" style={{ color: color(r.id) }}>
            <input type="checkbox" disabled={!!r.error} checked={chosen.includes(r.id)} onChange={() => update({ runs: (chosen.includes(r.id) ? chosen.filter((x) => x !== r.id) : [...chosen, r.id]).join(",") })} />
            {r.id} {r.training && <em>training</em>}
            {r.training && <button type="button" class="chip" onClick={() => void remove(`/api/runs/${encodeURIComponent(r.id)}`)}>stop</button>}
            {r.error && <span class="error">{r.error}</span>}
          </label>
        ))}
        <button type="button" onClick={() => void start()}>Train a small reversal model</button>
        {failure.value && <p class="error" role="alert">{failure.value}</p>}
      </aside>
      <section class="picture">
        {metric ? (
          <>
            <div class="controls">
              <label>
                Show{" "}
                <select value={metric} onChange={(e) => update({ y: e.currentTarget.value })}>
                  {metrics.map((k) => <option value={k}>{k.replace(/_/g, " ")}</option>)}
                </select>
              </label>
              <label>
                <input type="checkbox" checked={s.log} onChange={() => update({ log: !s.log })} /> logarithmic
              </label>
            </div>
            <h2>{metric.replace(/_/g, " ")} over updates</h2>
            <Chart
              label={`${metric} of ${chosen.join(", ")}`} deps={[data.length, metric, s.log, chosen.join()]}
              options={(width) => ({
                height: Math.min(480, Math.max(260, width * 0.5)), marginLeft: 56,
                x: { label: "update", grid: true }, y: { label: metric.replace(/_/g, " "), grid: true, type: s.log ? "log" : "linear" },
                marks: [
                  Plot.line(data, { x: "step", y: "value", stroke: (d: { id: string }) => color(d.id), z: "id", strokeOpacity: many ? 0.25 : 1, strokeWidth: many ? 1 : 2 }),
                  many ? Plot.line(smoothed, { x: "step", y: "value", stroke: (d: { id: string }) => color(d.id), z: "id", strokeWidth: 2 }) : Plot.dot(data, { x: "step", y: "value", fill: (d: { id: string }) => color(d.id), r: 2.5 }),
                  Plot.tip(data, Plot.pointer({ x: "step", y: "value", title: (d: { id: string; step: number; value: number }) => `${d.id}\nupdate ${d.step}\n${d.value.toPrecision(5)}` })),
                ],
              })}
            />
            <p class="caption">{many ? "Thin lines are the values, thick ones their running average (half-life 10 points)." : "One dot an evaluation."}</p>
            <details>
              <summary>The last values</summary>
              <table>
                <tbody>
                  {chosen.map((id) => {
                    const last = points(curves.value[id]?.records ?? [], metric).slice(-1)[0];
                    return <tr><th>{id}</th><td>{last ? `update ${last.step}` : "—"}</td><td>{last ? last.value.toPrecision(6) : ""}</td></tr>;
                  })}
                </tbody>
              </table>
            </details>
          </>
        ) : (
          <p class="empty">No figures yet. They appear here as soon as a training writes them.</p>
        )}
      </section>
    </main>
  );
}
