// Lab: each experiment with its sliders; prediction and measurement side by side.
import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Experiment, getJson, type LabResult, type LabRow } from "../api";
import { useAnswer, useWidth } from "../hooks";
import { csv } from "../save/csv";
import { exporting } from "../save/files";
import { figuresSvg, stackedSvg } from "../save/svg";
import { Select } from "../select";
import { state, update } from "../state";
import { BlockView, blockExperiment } from "./block";
import { Control } from "./control";
import { useExperiment } from "./experiment";
import { Formula } from "./formula";
import { LabChart } from "./lab_chart";
import { LabMapsView, labMapSvg } from "./lab_maps";

const experiments = signal<Experiment[]>([]);

function numberText(v: number | null): string {
  if (v === null) return "not finite";
  if (v === 0) return "0";
  if (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) return v.toExponential(3);
  return v.toPrecision(6).replace(/\.?0+$/, "");
}

function resultSvg(name: string, r: LabResult, box: HTMLElement, bare = false): string {
  const charts = Array.from(box.querySelectorAll<SVGSVGElement>(".lab-figure .chart svg"));
  const maps = r.pictures.flatMap((p) => (p.type === "maps" ? p.maps : []));
  return stackedSvg([figuresSvg(`${name}: ${r.claim}`, charts, bare), ...maps.map(labMapSvg)]);
}

// Rows from a stopwatch are shown and not judged.
const judged = (r: LabRow): boolean => r.kind !== "timed";

const resultCsv = ({ rows }: LabResult): string =>
  csv([
    ["at", "quantity", "predicted", "measured", "difference", "standard error", "agrees"],
    ...rows.map((r) => [
      r.at,
      r.quantity,
      r.predicted ?? "",
      r.measured ?? "",
      r.difference ?? "",
      r.standard_error ?? "",
      judged(r) ? String(r.agrees) : "",
    ]),
  ]);

export function Lab() {
  const { experiment, settings } = state.value;
  const [dragging, setDragging] = useState(false);
  const box = useRef<HTMLElement>(null);
  const chosen = experiments.value.find((e) => e.name === experiment) ?? experiments.value[0];
  const isBlock = chosen?.name === blockExperiment.name;
  const { result, error, setError } = useExperiment(isBlock ? undefined : chosen?.name, settings);
  const width = Math.min(900, (useWidth(box, !!chosen) || 632) - 32);
  useAnswer(
    () => !experiments.value.length && getJson<{ experiments: Experiment[] }>("/api/lab"),
    [],
    (answer) => {
      experiments.value = [...answer.experiments, blockExperiment];
    },
    (e) => setError(e.message),
  );
  const r = result?.value;
  useEffect(() => {
    if (!r || !chosen) return;
    exporting.value = {
      title: `lab ${chosen.name}`,
      caption: r.claim,
      svg: (bare) => resultSvg(chosen.name, r, box.current!, bare),
      csv: () => resultCsv(r),
    };
  }, [r]);
  if (!chosen)
    return (
      <main class="lab">
        <p class="empty">{error || "Loading…"}</p>
      </main>
    );
  return (
    <main class="lab">
      <Settings chosen={chosen} error={error} onDrag={setDragging} />
      <section
        class="picture"
        ref={box as RefObject<HTMLElement>}
        data-ready={isBlock || (result && result.settings === settings) ? "true" : "false"}
        data-ms={result?.ms.toFixed(0)}
      >
        {isBlock && <BlockView fail={(e) => setError(e.message)} />}
        {r && !isBlock && <Result name={chosen.name} r={r} dragging={dragging} width={width} />}
      </section>
    </main>
  );
}

interface SettingsProps {
  chosen: Experiment;
  error: string;
  onDrag: (held: boolean) => void;
}

function Settings({ chosen, error, onDrag }: SettingsProps) {
  const { settings } = state.value;
  const given = Object.fromEntries(new URLSearchParams(settings));
  const set = (name: string, value: string) =>
    update({ experiment: chosen.name, settings: new URLSearchParams({ ...given, [name]: value }).toString() });
  return (
    <aside class="panel">
      <label>
        Experiment
        <Select
          id="experiment"
          value={chosen.name}
          options={experiments.value.map((e) => [e.name, e.name] as const)}
          onChange={(name) => update({ experiment: name, settings: "" })}
        />
      </label>
      <p class="caption">
        <Formula text={chosen.summary} />
      </p>
      {chosen.settings.map((setting) => (
        <Control
          key={`${chosen.name}-${setting.name}`}
          setting={setting}
          value={given[setting.name] ?? setting.value}
          onDrag={onDrag}
          onChange={(v) => set(setting.name, v)}
        />
      ))}
      {settings && (
        <button type="button" onClick={() => update({ settings: "" })}>
          Back to the defaults
        </button>
      )}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
    </aside>
  );
}

interface ResultProps {
  name: string;
  r: LabResult;
  dragging: boolean;
  width: number;
}

/** "40 of 40 predictions agree with the measurement; exact ones differ by 1e-8 at most, sampled ones by 2.3 standard
 *  errors": differences of rows of other kinds depend on their units, so the table alone has them. */
function agreement(rows: LabRow[]): string {
  const largest = (kind: string, of: (r: LabRow) => number) =>
    rows.filter((r) => r.kind === kind).reduce((a: number | null, r) => Math.max(a ?? 0, Math.abs(of(r))), null);
  const exact = largest("exact", (r) => r.difference ?? 0);
  const sampled = largest("sampled", (r) => (r.difference ?? 0) / (r.standard_error || 1));
  const parts = [
    exact === null ? "" : `exact ones differ by ${numberText(exact)} at most`,
    sampled === null ? "" : `sampled ones by ${sampled.toFixed(1)} standard errors at most`,
  ].filter((p) => p);
  const checked = rows.filter(judged);
  const agreeing = checked.filter((r) => r.agrees).length;
  const timed = rows.length - checked.length;
  const clock = timed > 0 ? ` ${timed} more come from a stopwatch.` : "";
  return `${[`${agreeing} of ${checked.length} predictions agree with the measurement`, parts.join(", ")].filter((p) => p).join("; ")}.${clock}`;
}

function Result({ name, r, dragging, width }: ResultProps) {
  return (
    <>
      <h2 class="claim">
        <Formula text={r.claim} />
      </h2>
      <pre class="formula">
        {r.formula_markup.split("\n").map((line) => (
          <div>
            <Formula text={line} />
          </div>
        ))}
      </pre>
      {r.pictures.map((p, i) =>
        p.type === "plot" ? (
          <LabChart key={`${name}${i}`} p={p} dragging={dragging} />
        ) : (
          <LabMapsView key={`${name}${i}`} p={p} width={width} />
        ),
      )}
      <p class="caption" id="agreement">
        {agreement(r.rows)}
      </p>
      <details open={r.rows.length <= 12}>
        <summary>The numbers</summary>
        <Rows rows={r.rows} />
      </details>
      <ul>
        {r.notes.map((n) => (
          <li>
            <Formula text={n} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Rows({ rows }: { rows: LabRow[] }) {
  return (
    <div class="scroll">
      <table class="lab-table">
        <thead>
          <tr>
            <th>at</th>
            <th>quantity</th>
            <th class="n">predicted</th>
            <th class="n">measured</th>
            <th class="n">difference</th>
            <th>agrees</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr>
              <td>
                <Formula text={r.at} />
              </td>
              <td>
                <Formula text={r.quantity} />
              </td>
              <td class="n">{numberText(r.predicted)}</td>
              <td class="n">
                {numberText(r.measured)}
                {r.standard_error ? ` ± ${numberText(r.standard_error)}` : ""}
              </td>
              <td class="n">{numberText(r.difference)}</td>
              <td class={r.agrees || !judged(r) ? "" : "error"}>
                {judged(r) ? (r.agrees ? "✓" : "✗") : ""} <small>{judged(r) ? r.kind : "stopwatch"}</small>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
