// Lab: each experiment with its sliders; prediction and measurement side by side.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { ApiError, type Experiment, type LabResult, type Setting, getJson, postJson } from "./api";
import { state, update } from "./state";

const experiments = signal<Experiment[]>([]);

/** Sliders step in tenths of the value's size, and over decades where the range is wide. */
function Control({ setting, value, onChange }: { setting: Setting; value: string; onChange: (v: string) => void }) {
  const id = `set-${setting.name}`;
  if (setting.kind === "flag") {
    return (
      <label class="control"><input id={id} type="checkbox" checked={value === "true"} onChange={() => onChange(value === "true" ? "false" : "true")} /> {setting.name}<small>{setting.help}</small></label>
    );
  }
  if (setting.kind === "choice") {
    return (
      <label class="control">{setting.name}<select id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)}>{setting.choices!.map((c) => <option>{c}</option>)}</select><small>{setting.help}</small></label>
    );
  }
  if (setting.kind === "text") {
    return <label class="control">{setting.name}<input id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)} /><small>{setting.help}</small></label>;
  }
  const whole = setting.kind === "integer";
  const standard = Number(setting.value) || 1;
  const low = Math.max(setting.low ?? 0, whole ? 0 : 0), high = Math.min(setting.high ?? Infinity, Math.max(4 * Math.abs(standard), whole ? 8 : 1));
  return (
    <label class="control">
      {setting.name}
      <input type="range" aria-label={`${setting.name} slider`} min={low} max={high} step={whole ? 1 : (high - low) / 200} value={Number(value)} onInput={(e) => onChange(e.currentTarget.value)} />
      <input id={id} type="number" step={whole ? 1 : "any"} value={value} onChange={(e) => onChange(e.currentTarget.value)} />
      <small>{setting.help}</small>
    </label>
  );
}

function Formula({ text }: { text: string }) {
  // x_{i} and e^{t} become sub- and superscripts; everything else stays as it is.
  const parts = text.split(/([_^]\{[^}]*\})/);
  return <>{parts.map((p) => (p.startsWith("_{") ? <sub>{p.slice(2, -1)}</sub> : p.startsWith("^{") ? <sup>{p.slice(2, -1)}</sup> : p))}</>;
}

const number = (v: number): string => (v === 0 ? "0" : Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5 ? v.toExponential(3) : v.toPrecision(6).replace(/\.?0+$/, ""));

export function Lab() {
  const s = state.value;
  const [result, setResult] = useState<LabResult | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    if (!experiments.value.length) getJson<{ experiments: Experiment[] }>("/api/lab").then((a) => (experiments.value = a.experiments)).catch((e: ApiError) => setError(e.message));
  }, []);
  const chosen = experiments.value.find((e) => e.name === s.e) ?? experiments.value[0];
  const given = Object.fromEntries(new URLSearchParams(s.p));
  useEffect(() => {
    if (!chosen) return;
    let current = true;
    postJson<LabResult>(`/api/lab/${chosen.name}`, { settings: given })
      .then((r) => {
        if (!current) return;
        setResult(r);
        setError("");
      })
      .catch((e: ApiError) => current && setError(e.message));
    return () => {
      current = false;
    };
  }, [chosen?.name, s.p]);
  if (!chosen) return <main class="lab"><p>{error || "Loading…"}</p></main>;
  return (
    <main class="lab">
      <aside class="panel">
        <label>
          Experiment
          <select id="experiment" value={chosen.name} onChange={(e) => update({ e: e.currentTarget.value, p: "" })}>
            {experiments.value.map((e) => <option value={e.name}>{e.name}</option>)}
          </select>
        </label>
        <p>{chosen.summary}</p>
        {chosen.settings.map((setting) => (
          <Control key={`${chosen.name}-${setting.name}`} setting={setting} value={given[setting.name] ?? setting.value} onChange={(v) => update({ p: new URLSearchParams({ ...given, [setting.name]: v }).toString() })} />
        ))}
        {s.p && <button type="button" onClick={() => update({ p: "" })}>Back to the defaults</button>}
        {error && <p class="error" role="alert">{error}</p>}
      </aside>
      <section class="picture" data-ready={result ? "true" : "false"}>
        {result && (
          <>
            <h2>{chosen.name}</h2>
            <p class="claim">{result.claim}</p>
            <pre class="formula">{result.formula.split("\n").map((line) => <div><Formula text={line} /></div>)}</pre>
            {result.figures?.map((svg) => <img class="figure" alt={`${chosen.name}: ${result.claim}`} src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`} />)}
            <div class="scroll">
              <table>
                <thead><tr><th>at</th><th>quantity</th><th>predicted</th><th>measured</th><th>difference</th><th></th></tr></thead>
                <tbody>
                  {result.rows.map((r) => (
                    <tr>
                      <td><Formula text={r.at} /></td><td><Formula text={r.quantity} /></td>
                      <td class="n">{number(r.predicted)}</td>
                      <td class="n">{number(r.measured)}{r.standard_error > 0 && ` ± ${number(r.standard_error)}`}</td>
                      <td class="n">{number(r.measured - r.predicted)}</td>
                      <td>{r.agrees ? "✓" : "✗ off"} <small>{r.kind}</small></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <ul>{result.notes.map((n) => <li><Formula text={n} /></li>)}</ul>
          </>
        )}
      </section>
    </main>
  );
}
