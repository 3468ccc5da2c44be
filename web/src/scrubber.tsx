// The map of one fixed example at every checkpoint of a training: what it looked like on the way.
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, type Run, type Trace, getJson, postJson } from "./api";
import { HeatMap } from "./heatmap";
import { mapExport, saveAs } from "./export";
import { type Matrix, shown } from "./matrix";
import { state, update } from "./state";
import { fetchMap, siteName } from "./trace";

interface Look {
  t: Trace;
  m: Matrix;
}

/** Maps already fetched, by run, checkpoint and input; a checkpoint never changes. */
const known = new Map<string, Look>();
const mostKnown = 400;

async function lookAt(run: string, step: number, input: string): Promise<Look | null> {
  const key = JSON.stringify([run, step, input]);
  const before = known.get(key);
  if (before) return before;
  const t = await postJson<Trace>("/api/trace", { model: run, checkpoint: String(step), input });
  const site = t.sites.find((s) => s.id === "cross") ?? t.sites[t.sites.length - 1];
  if (!site) return null;
  const m = await fetchMap(t, { site, layer: site.layers - 1, head: 0 });
  if (known.size > mostKnown) known.clear();
  known.set(key, { t, m });
  return { t, m };
}

function difference(a: Matrix, b: Matrix): Matrix | null {
  if (a.rows !== b.rows || a.cols !== b.cols) return null;
  return { ...a, values: a.values.map((v, i) => v - b.values[i]), kind: undefined };
}

export function Scrubber({ run }: { run: Run }) {
  const s = state.value;
  const steps = run.checkpoints;
  const [input, setInput] = useState("");
  const [look, setLook] = useState<{ step: number; look: Look } | null>(null);
  const [last, setLast] = useState<Look | null>(null);
  const [problem, setProblem] = useState("");
  const [against, setAgainst] = useState(false);
  const [playing, setPlaying] = useState(false);
  const at = s.k >= 0 && steps.length ? steps.reduce((a, b) => (Math.abs(b - s.k) < Math.abs(a - s.k) ? b : a)) : steps[steps.length - 1];
  const index = steps.indexOf(at);
  const wanted = useRef(0);
  useEffect(() => {
    let current = true;
    setInput("");
    setLook(null);
    setLast(null);
    getJson<{ examples: string[] }>(`/api/runs/${encodeURIComponent(run.id)}/examples`)
      .then((a) => current && setInput(s.m === run.id && s.x ? s.x : (a.examples[0] ?? "")))
      .catch((e: ApiError) => current && setProblem(e.message));
    return () => {
      current = false;
    };
  }, [run.id, steps.length > 0]);
  useEffect(() => {
    if (!input || at === undefined) return;
    wanted.current = at;
    lookAt(run.id, at, input)
      .then((found) => {
        if (wanted.current !== at) return;
        setLook(found && { step: at, look: found });
        setProblem(found ? "" : "This model has no attention to show.");
      })
      .catch((e: ApiError) => setProblem(e.message));
  }, [run.id, at, input]);
  useEffect(() => {
    if (!input || !steps.length || !against) return;
    lookAt(run.id, steps[steps.length - 1], input).then(setLast).catch((e: ApiError) => setProblem(e.message));
  }, [run.id, input, against, steps.length]);
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      // The next one only when this one is drawn: a slow model plays slowly, and skips nothing.
      if (look?.step !== at) return;
      if (index + 1 >= steps.length) setPlaying(false);
      else update({ k: steps[index + 1] });
    }, 250);
    return () => clearInterval(timer);
  }, [playing, index, look?.step, steps.length]);
  const changed = against && last && look ? difference(look.look.m, last.m) : null;
  const shownMap = changed ?? look?.look.m;
  const title = look ? `${run.id} at update ${look.step}: “${shown(input)}”` : "";
  const scale = changed ? "centered" : "abs";
  if (!steps.length) return <p class="caption">A map of one example appears here with the first checkpoint.</p>;
  const site = look?.look.t.sites.find((x) => x.id === "cross") ?? look?.look.t.sites[look.look.t.sites.length - 1];
  return (
    <section class="scrubber" data-ready={look ? "true" : "false"} data-step={look?.step ?? ""}>
      <h2>
        One example as training goes on
        <small>{look && site ? `“${shown(input)}” → “${shown(look.look.t.output)}” at update ${look.step}; ${siteName[site.id] ?? site.id}, layer ${site.layers - 1}, head 0` : "Loading…"}</small>
      </h2>
      <div class="controls">
        <button type="button" onClick={() => { if (!playing && index === steps.length - 1) update({ k: steps[0] }); setPlaying(!playing); }}>{playing ? "Pause" : "Play"}</button>
        <input
          id="scrub" type="range" aria-label="Checkpoint" min={0} max={steps.length - 1} value={index}
          aria-valuetext={`update ${at}`} onInput={(e) => update({ k: steps[Number(e.currentTarget.value)] })}
        />
        <span class="n">update {at}</span>
        <label><input type="checkbox" checked={against} onChange={() => setAgainst(!against)} /> difference from the last</label>
        {shownMap && <span class="save">Save map {(["svg", "png", "csv"] as const).map((kind) => <button type="button" class="chip" onClick={() => void saveAs(kind, mapExport(title, shownMap, scale))}>{kind.toUpperCase()}</button>)}</span>}
      </div>
      {problem && <p class="error" role="alert">{problem}</p>}
      {against && last && look && !changed && <p class="caption">The outputs differ in length: the map itself is shown.</p>}
      {shownMap && <HeatMap m={shownMap} scale={scale} label={title} pinned={-1} onPin={() => undefined} />}
    </section>
  );
}
