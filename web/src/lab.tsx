// Lab: each experiment with its sliders; prediction and measurement side by side.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, type Experiment, type LabResult, type LabRow, type Setting, getJson, postJson } from "./api";
import { chartsSvg, exporting, mapSvg } from "./export";
import { LabChart, LabMapsView, labScale, matrixOf } from "./lab_picture";
import { csvLine } from "./matrix";
import { state, update } from "./state";

const experiments = signal<Experiment[]>([]);

/** Where a slider goes: the limits, or around the default where there are none; over decades when the range is wide. */
export function sliderRange(s: Setting): { low: number; high: number; log: boolean } {
  const standard = Math.abs(Number(s.value)) || 1, whole = s.kind === "integer";
  const low = s.low ?? -4 * standard;
  const most = Math.max(4 * standard, whole ? 8 : 2);
  const high = Math.min(s.high ?? Infinity, s.high !== undefined && s.high <= 100 * standard ? s.high : most);
  const log = low > 0 && high / low >= 1000;
  return { low, high: Math.max(high, low + (whole ? 1 : 1e-6)), log };
}

interface ControlProps {
  setting: Setting;
  value: string;
  onChange: (v: string) => void;
  onDrag: (held: boolean) => void;
}

function Control({ setting, value, onChange, onDrag }: ControlProps) {
  const id = `set-${setting.name}`;
  const name = <span class="name">{setting.name}</span>, help = <small>{setting.help}</small>;
  if (setting.kind === "flag") return <label class="control flag"><input id={id} type="checkbox" checked={value === "true"} onChange={() => onChange(value === "true" ? "false" : "true")} /> {name}{help}</label>;
  if (setting.kind === "choice") return <label class="control">{name}<select id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)}>{setting.choices!.map((c) => <option>{c}</option>)}</select>{help}</label>;
  if (setting.kind === "text") return <label class="control">{name}<input id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)} />{help}</label>;
  const whole = setting.kind === "integer";
  const { low, high, log } = sliderRange(setting);
  const to = (v: number) => (log ? Math.log10(v) : v);
  const from = (v: number) => {
    const x = log ? 10 ** v : v;
    return whole ? String(Math.round(x)) : String(Number(x.toPrecision(4)));
  };
  return (
    <label class="control">
      {name}
      <span class="slider">
        <input
          type="range" aria-label={`${setting.name} slider`} min={to(low)} max={to(high)} step={whole && !log ? 1 : (to(high) - to(low)) / 200} value={to(Number(value))}
          onPointerDown={() => onDrag(true)} onPointerUp={() => onDrag(false)} onPointerCancel={() => onDrag(false)}
          onInput={(e) => onChange(from(Number(e.currentTarget.value)))}
        />
        <input id={id} type="number" step={whole ? 1 : "any"} value={value} onChange={(e) => onChange(e.currentTarget.value)} />
      </span>
      {help}
    </label>
  );
}

/** x_{i}, v_a and e^{t_{j}} become sub- and superscripts; everything else stays as it is. */
function Formula({ text }: { text: string }): JSX.Element {
  const begin = /[_^]\{|(?<=[A-Za-zα-ωΑ-Ω])_[A-Za-z0-9](?![A-Za-z0-9])/.exec(text);
  if (!begin) return <>{text}</>;
  const at = begin.index;
  let end = at + 2;
  if (text[at + 1] === "{") for (let depth = 1; end < text.length && depth > 0; end++) depth += text[end] === "{" ? 1 : text[end] === "}" ? -1 : 0;
  const inner = <Formula text={text[at + 1] === "{" ? text.slice(at + 2, end - 1) : text[at + 1]} />;
  return <>{text.slice(0, at)}{text[at] === "_" ? <sub>{inner}</sub> : <sup>{inner}</sup>}<Formula text={text.slice(end)} /></>;
}

const number = (v: number | null): string => (v === null ? "not finite" : v === 0 ? "0" : Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5 ? v.toExponential(3) : v.toPrecision(6).replace(/\.?0+$/, ""));

/** The latest settings win: one request at a time, and what changed meanwhile is asked next. */
function useExperiment(name: string | undefined, settings: string) {
  const [result, setResult] = useState<{ name: string; settings: string; value: LabResult; ms: number } | null>(null);
  const [error, setError] = useState("");
  const wanted = useRef("");
  const running = useRef(false);
  useEffect(() => {
    if (!name) return;
    wanted.current = JSON.stringify([name, settings]);
    const run = async () => {
      if (running.current) return;
      running.current = true;
      for (let done = ""; done !== wanted.current; ) {
        done = wanted.current;
        const [n, p] = JSON.parse(done) as [string, string];
        const begin = performance.now();
        try {
          const value = await postJson<LabResult>(`/api/lab/${n}`, { settings: Object.fromEntries(new URLSearchParams(p)) });
          setResult({ name: n, settings: p, value, ms: performance.now() - begin });
          setError("");
        } catch (e) {
          if (done === wanted.current) setError((e as ApiError).message);
        }
      }
      running.current = false;
    };
    void run();
  }, [name, settings]);
  return { result: result?.name === name ? result : null, error, setError };
}

function Rows({ rows }: { rows: LabRow[] }) {
  return (
    <div class="scroll">
      <table class="lab-table">
        <thead><tr><th>at</th><th>quantity</th><th class="n">predicted</th><th class="n">measured</th><th class="n">difference</th><th>agrees</th></tr></thead>
        <tbody>
          {rows.map((r) => (
            <tr>
              <td><Formula text={r.at} /></td><td><Formula text={r.quantity} /></td>
              <td class="n">{number(r.predicted)}</td>
              <td class="n">{number(r.measured)}{r.standard_error ? ` ± ${number(r.standard_error)}` : ""}</td>
              <td class="n">{number(r.difference)}</td>
              <td class={r.agrees ? "" : "error"}>{r.agrees ? "✓" : "✗"} <small>{r.kind}</small></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Lab() {
  const s = state.value;
  const [dragging, setDragging] = useState(false);
  const box = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(600);
  const chosen = experiments.value.find((e) => e.name === s.e) ?? experiments.value[0];
  const { result, error, setError } = useExperiment(chosen?.name, s.p);
  useEffect(() => {
    if (!experiments.value.length) getJson<{ experiments: Experiment[] }>("/api/lab").then((a) => (experiments.value = a.experiments)).catch((e: ApiError) => setError(e.message));
  }, []);
  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(() => box.current && setWidth(Math.min(900, box.current.clientWidth - 32)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [!!chosen]);
  const given = Object.fromEntries(new URLSearchParams(s.p));
  const r = result?.value;
  useEffect(() => {
    if (!r || !chosen) return;
    const maps = r.pictures.flatMap((p) => (p.type === "maps" ? p.maps : []));
    exporting.value = {
      title: `lab ${chosen.name}`, caption: r.claim,
      svg: () => {
        const charts = Array.from(box.current!.querySelectorAll<SVGSVGElement>(".lab-figure .chart svg"));
        if (charts.length) return chartsSvg(`${chosen.name}: ${r.claim}`, charts.map((svg) => ({ label: svg.closest("figure")!.querySelector("figcaption")!.textContent ?? "", svg })));
        return maps.length ? mapSvg(maps[0].title, matrixOf(maps[0]), labScale(maps[0])) : chartsSvg(r.claim, []);
      },
      csv: () => [csvLine(["at", "quantity", "predicted", "measured", "difference", "standard error", "agrees"]), ...r.rows.map((x) => csvLine([x.at, x.quantity, x.predicted ?? "", x.measured ?? "", x.difference ?? "", x.standard_error ?? "", String(x.agrees)]))].join("\n") + "\n",
    };
  }, [r]);
  if (!chosen) return <main class="lab"><p class="empty">{error || "Loading…"}</p></main>;
  const gap = r ? r.rows.reduce((a, x) => Math.max(a, Math.abs(x.difference ?? 0)), 0) : 0;
  return (
    <main class="lab">
      <aside class="panel">
        <label>
          Experiment
          <select id="experiment" value={chosen.name} onChange={(e) => update({ e: e.currentTarget.value, p: "" })}>
            {experiments.value.map((e) => <option value={e.name}>{e.name}</option>)}
          </select>
        </label>
        <p class="caption">{chosen.summary}</p>
        {chosen.settings.map((setting) => (
          <Control
            key={`${chosen.name}-${setting.name}`} setting={setting} value={given[setting.name] ?? setting.value} onDrag={setDragging}
            onChange={(v) => update({ e: chosen.name, p: new URLSearchParams({ ...given, [setting.name]: v }).toString() })}
          />
        ))}
        {s.p && <button type="button" onClick={() => update({ p: "" })}>Back to the defaults</button>}
        {error && <p class="error" role="alert">{error}</p>}
      </aside>
      <section class="picture" ref={box} data-ready={result && result.settings === s.p ? "true" : "false"} data-ms={result?.ms.toFixed(0)}>
        {r && (
          <>
            <h2 class="claim"><Formula text={r.claim} /></h2>
            <pre class="formula">{r.formula_markup.split("\n").map((line) => <div><Formula text={line} /></div>)}</pre>
            {r.pictures.map((p, i) => (p.type === "plot" ? <LabChart key={`${chosen.name}${i}`} p={p} dragging={dragging} /> : <LabMapsView key={`${chosen.name}${i}`} p={p} width={width} />))}
            <p class="caption">{r.rows.filter((x) => x.agrees).length} of {r.rows.length} predictions agree with the measurement; the largest difference is {number(gap)}.</p>
            <details open={r.rows.length <= 12}>
              <summary>The numbers</summary>
              <Rows rows={r.rows} />
            </details>
            <ul>{r.notes.map((n) => <li><Formula text={n} /></li>)}</ul>
          </>
        )}
      </section>
    </main>
  );
}
