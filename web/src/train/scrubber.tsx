// The map of one fixed example at every checkpoint of a training: what it looked like on the way.
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, getJson, postJson, type Run, type Site, type Trace } from "../api";
import { useAnswer, useTimer } from "../hooks";
import { HeatMap } from "../map/heatmap";
import { Legend } from "../map/legend";
import type { Matrix } from "../map/matrix";
import { shown } from "../map/tokens";
import { mapExport, saveAs } from "../save/files";
import { state, update } from "../state";
import { fetchMap, isMean, siteName } from "../trace";

/** One example as one checkpoint sees it. */
interface Look {
  step: number;
  t: Trace;
  map: { site: Site; m: Matrix } | null; // null: it has no attention
}

/** Maps already fetched, by run, checkpoint and input; a checkpoint never changes. */
const known = new Map<string, Look>();
const mostKnown = 400;

async function lookAt(run: string, step: number, input: string): Promise<Look> {
  const key = JSON.stringify([run, step, input]);
  const before = known.get(key);
  if (before) return before;
  const t = await postJson<Trace>("/api/trace", { model: run, checkpoint: String(step), input });
  const site = t.sites.find((s) => s.id === "cross") ?? t.sites[t.sites.length - 1];
  const map = site ? { site, m: await fetchMap(t, { site, layer: site.layers - 1, head: 0 }) } : null;
  const look = { step, t, map };
  if (known.size > mostKnown) known.clear();
  known.set(key, look);
  return look;
}

function difference(a: Matrix, b: Matrix): Matrix | null {
  if (a.rows !== b.rows || a.cols !== b.cols) return null;
  return { ...a, values: a.values.map((v, i) => v - b.values[i]), kind: undefined };
}

/** The checkpoint nearest to the one the state names, else the last. */
function chosenStep(steps: number[]): number {
  const { trainingStep: wanted } = state.value;
  if (wanted < 0) return steps[steps.length - 1];
  return steps.reduce((a, b) => (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a));
}

/** The example: the input of the explore view where it belongs to this run, else the run's first. */
function useExample(run: Run, fail: (e: ApiError) => void): string {
  const { model, input } = state.value;
  const [example, setExample] = useState("");
  useAnswer(
    () => getJson<{ examples: string[] }>(`/api/runs/${encodeURIComponent(run.id)}/examples`),
    [run.id],
    ({ examples }) => setExample(model === run.id && input ? input : (examples[0] ?? "")),
    fail,
  );
  return example;
}

export function Scrubber({ run }: { run: Run }) {
  const steps = run.checkpoints;
  const end = steps[steps.length - 1];
  const at = chosenStep(steps);
  const [look, setLook] = useState<Look | null>(null);
  const [last, setLast] = useState<Look | null>(null);
  const [problem, setProblem] = useState("");
  const [against, setAgainst] = useState(false);
  const fail = (e: ApiError) => setProblem(e.message);
  const input = useExample(run, fail);
  const wanted = useRef(0);
  useEffect(() => {
    if (!input) return;
    wanted.current = at;
    const take = (found: Look) => {
      if (wanted.current !== at) return;
      setLook(found);
      setProblem("");
    };
    lookAt(run.id, at, input).then(take, fail);
  }, [run.id, at, input]);
  useEffect(() => {
    if (input && against) lookAt(run.id, end, input).then(setLast, fail);
  }, [run.id, input, against, steps.length]);
  const changed = against && last?.map && look?.map ? difference(look.map.m, last.map.m) : null;
  const map = changed ?? look?.map?.m;
  const what = changed ? ", difference from the last" : "";
  const title = look ? `${run.id} at step ${look.step}${what}: “${shown(input)}”` : "";
  const scale = changed ? "centered" : state.value.scale;
  const save = (kind: "svg" | "png" | "csv") => map && void saveAs(kind, mapExport(title, map, scale));
  return (
    <section class="scrubber" data-ready={look ? "true" : "false"} data-step={look?.step ?? ""}>
      <h2>
        One example as training continues
        <small>{look ? describe(look, input) : "Loading…"}</small>
      </h2>
      <div class="controls">
        <Player steps={steps} at={at} drawn={look?.step} />
        {map && (
          <label>
            <input type="checkbox" checked={against} onChange={() => setAgainst(!against)} /> difference from the last
          </label>
        )}
        {map && <SaveButtons save={save} />}
      </div>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {against && last && map && !changed && (
        <p class="caption">The outputs differ in length: the map itself is shown.</p>
      )}
      {map && <HeatMap m={map} scale={scale} label={title} pinned={-1} onPin={() => undefined} />}
      {map && (
        <p class="caption">
          <Legend m={map} scale={scale} />
        </p>
      )}
    </section>
  );
}

function describe({ t, map, step }: Look, input: string): string {
  const result = `“${shown(input)}” → “${shown(t.output)}” at step ${step}`;
  if (!map) return `${result}. This model has no attention, so there is no map.`;
  const { site } = map;
  const head = isMean(site) ? "" : `, layer ${site.layers - 1}, head 0`;
  return `${result}; ${siteName(site)}${head}`;
}

/** Chooses a checkpoint; `drawn` is the one whose map is shown. */
function Player({ steps, at, drawn }: { steps: number[]; at: number; drawn: number | undefined }) {
  const [playing, setPlaying] = useState(false);
  const index = steps.indexOf(at);
  const tick = () => {
    // The next one only when this one is drawn: a slow model plays slowly, and skips nothing.
    if (drawn !== at) return;
    if (index + 1 >= steps.length) setPlaying(false);
    else update({ trainingStep: steps[index + 1] });
  };
  useTimer(playing, 250, tick, [index, drawn, steps.length]);
  const play = () => {
    if (!playing && index === steps.length - 1) update({ trainingStep: steps[0] });
    setPlaying(!playing);
  };
  return (
    <>
      <button type="button" onClick={play}>
        {playing ? "Pause" : "Play"}
      </button>
      <input
        id="scrub"
        type="range"
        aria-label="Checkpoint"
        min={0}
        max={steps.length - 1}
        value={index}
        aria-valuetext={`step ${at}`}
        onInput={(e) => update({ trainingStep: steps[Number(e.currentTarget.value)] })}
      />
      <span class="n">step {at}</span>
    </>
  );
}

function SaveButtons({ save }: { save: (kind: "svg" | "png" | "csv") => void }) {
  return (
    <span class="save">
      Save map{" "}
      {(["svg", "png", "csv"] as const).map((kind) => (
        <button type="button" class="chip" onClick={() => save(kind)}>
          {kind.toUpperCase()}
        </button>
      ))}
    </span>
  );
}
