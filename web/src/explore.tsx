// Explore: type an input, see the output and where the model looked.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { ApiError, type Figures, type Run, type Site, type Trace, getArray, getJson, postJson, query } from "./api";
import { Chart } from "./chart";
import { type Scale, colorTable, css, seriesColor } from "./colors";
import { saveCsv, saveHtml, savePng, saveSvg } from "./export";
import { HeatMap, TintedTokens } from "./heatmap";
import { Lines } from "./lines";
import { type Matrix, caption } from "./matrix";
import { state, update } from "./state";
import * as Plot from "@observablehq/plot";

const trace = signal<Trace | null>(null);
const failure = signal<{ message: string; field: string } | null>(null);
const busy = signal(false);
let asked = "";

async function ask(): Promise<void> {
  const { m, c, x } = state.value;
  const key = JSON.stringify([m, c, x]);
  if (!m || !x || key === asked) return;
  asked = key;
  busy.value = true;
  try {
    const answer = await postJson<Trace>("/api/trace", { model: m, checkpoint: c, input: x });
    if (key !== asked) return;
    trace.value = answer;
    failure.value = null;
  } catch (e) {
    if (key !== asked) return;
    asked = "";
    const error = e as ApiError;
    failure.value = { message: error.message, field: error.field ?? "" };
  } finally {
    busy.value = false;
  }
}

const siteName: Record<string, string> = { cross: "decoder → source", encoder: "encoder self-attention", decoder: "decoder self-attention", self: "self-attention" };

function useMap(t: Trace | null, site: Site | undefined, layer: number, head: number, what: string): Matrix | null {
  const [m, setMap] = useState<Matrix | null>(null);
  useEffect(() => {
    let current = true;
    setMap(null);
    if (!t || !site || layer >= site.layers || head >= site.heads) return;
    getArray(`/api/trace/${t.id}/map?${query({ site: site.id, layer, head, what })}`)
      .then(({ shape, values }) => current && setMap(matrixOf(t, site, shape, values)))
      .catch((e: ApiError) => (failure.value = { message: e.message, field: "" }));
    return () => {
      current = false;
    };
  }, [t?.id, site?.id, layer, head, what]);
  return m;
}

function matrixOf(t: Trace, site: Site, shape: number[], values: Float32Array): Matrix {
  const label = (tokens: string[], n: number) => Array.from({ length: n }, (_, i) => tokens[i] ?? String(i));
  return { rows: shape[0], cols: shape[1], values, rowLabels: label(t.tokens[site.rows], shape[0]), colLabels: label(t.tokens[site.columns], shape[1]) };
}

function InputPanel({ runs }: { runs: Run[] }) {
  const s = state.value;
  const [text, setText] = useState(s.x);
  const [examples, setExamples] = useState<string[]>([]);
  const run = runs.find((r) => r.id === s.m);
  useEffect(() => setText(s.x), [s.x]);
  useEffect(() => {
    setExamples([]);
    if (!run || run.error || !run.checkpoints.length) return;
    getJson<{ examples: string[] }>(`/api/runs/${encodeURIComponent(run.id)}/examples`)
      .then((a) => {
        setExamples(a.examples);
        if (!state.value.x && a.examples.length) update({ x: a.examples[0] });
      })
      .catch((e: ApiError) => (failure.value = { message: e.message, field: "model" }));
  }, [s.m]);
  return (
    <aside class="panel input-panel">
      <label>
        Run
        <select value={s.m} onChange={(e) => update({ m: e.currentTarget.value, c: "", x: "", s: "", l: 0, h: 0, q: -1 })}>
          {runs.map((r) => (
            <option value={r.id} disabled={!!r.error}>
              {r.id} {r.error ? "(cannot be read)" : `(${r.task})`}
            </option>
          ))}
        </select>
      </label>
      <label>
        Checkpoint
        <select value={s.c} onChange={(e) => update({ c: e.currentTarget.value })}>
          <option value="">newest</option>
          {run?.checkpoints.map((c) => <option value={String(c)}>step {c}</option>)}
        </select>
      </label>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          update({ x: text, q: -1 });
        }}
      >
        <label>
          Input
          <textarea
            id="input" rows={3} value={text} spellcheck={false} aria-invalid={!!failure.value}
            onInput={(e) => setText(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key === "Enter" && !e.shiftKey) {
                e.preventDefault();
                update({ x: text, q: -1 });
              }
            }}
          />
        </label>
        {failure.value && <p class="error" role="alert">{failure.value.message}</p>}
        <button type="submit" disabled={!text || busy.value}>{busy.value ? "Working…" : "Look"}</button>
      </form>
      {examples.length > 0 && (
        <div class="examples">
          <span>Examples</span>
          {examples.map((x) => (
            <button type="button" class="chip" onClick={() => update({ x, q: -1 })}>{x}</button>
          ))}
        </div>
      )}
      {trace.value && (
        <p class="output">
          Output <output id="output">{trace.value.output}</output>
        </p>
      )}
    </aside>
  );
}

/** Thumbnails of all layers x heads; click to enlarge. */
function Thumbnails({ t, site }: { t: Trace; site: Site }) {
  const [thumbs, setThumbs] = useState<{ shape: number[]; values: Float32Array } | null>(null);
  const size = 32;
  useEffect(() => {
    let current = true;
    getArray(`/api/trace/${t.id}/thumbs?${query({ site: site.id, size })}`).then((a) => current && setThumbs(a)).catch(() => setThumbs(null));
    return () => {
      current = false;
    };
  }, [t.id, site.id]);
  if (!thumbs) return null;
  const { l, h } = state.value;
  const table = colorTable("abs");
  const paint = (canvas: HTMLCanvasElement | null, layer: number, head: number) => {
    if (!canvas) return;
    const c = canvas.getContext("2d")!;
    const image = c.createImageData(size, size);
    const start = (layer * site.heads + head) * size * size;
    for (let i = 0; i < size * size; i++) {
      const k = Math.max(0, Math.min(255, Math.round(thumbs.values[start + i] * 255))) * 4;
      image.data.set(table.subarray(k, k + 4), i * 4);
    }
    c.putImageData(image, 0, 0);
  };
  return (
    <div class="thumbs" role="group" aria-label="All layers and heads">
      {Array.from({ length: site.layers }, (_, layer) => (
        <div class="thumb-row">
          <span class="thumb-layer">L{layer}</span>
          {Array.from({ length: site.heads }, (_, head) => (
            <button type="button" class={layer === l && head === h ? "thumb here" : "thumb"} aria-label={`Layer ${layer}, head ${head}`} aria-pressed={layer === l && head === h} onClick={() => update({ l: layer, h: head })}>
              <canvas width={size} height={size} ref={(c) => paint(c, layer, head)} />
              <span style={{ color: seriesColor(head) }}>{head}</span>
            </button>
          ))}
        </div>
      ))}
    </div>
  );
}

function HeadsView({ t, site }: { t: Trace; site: Site }) {
  const [figures, setFigures] = useState<Figures | null>(null);
  useEffect(() => {
    let current = true;
    getJson<Figures>(`/api/trace/${t.id}/figures?${query({ site: site.id })}`).then((f) => current && setFigures(f)).catch(() => setFigures(null));
    return () => {
      current = false;
    };
  }, [t.id, site.id]);
  if (!figures) return <p>Counting…</p>;
  const kinds: [keyof Figures, string][] = [
    ["entropy", "entropy, share of the possible"], ["largest", "mean largest weight"], ["distance", "mean distance, tokens"], ["self", "weight on the own position"], ["first", "weight on the first key"],
  ];
  const rows = (kind: keyof Figures) => figures[kind].flatMap((heads, layer) => heads.map((value, head) => ({ layer, head, value })));
  return (
    <div class="heads">
      <p>Each dot is a head: how spread its weights are, how far it looks, and where it often looks.</p>
      {kinds.map(([kind, title]) => (
        <figure>
          <figcaption>{title}</figcaption>
          <Chart
            label={`${title} of every head`} deps={[figures, kind]}
            options={() => ({
              height: 44 + 26 * site.layers, marginLeft: 60,
              x: { label: null, grid: true, nice: true, zero: true },
              y: { label: null, domain: Array.from({ length: site.layers }, (_, i) => i), tickFormat: (d: number) => `layer ${d}`, type: "point", padding: 0.7 },
              marks: [
                Plot.dot(rows(kind), { x: "value", y: "layer", r: 8, fill: (d: { head: number }) => seriesColor(d.head), title: (d: { layer: number; head: number; value: number }) => `layer ${d.layer}, head ${d.head}: ${d.value.toFixed(4)}` }),
                Plot.text(rows(kind), { x: "value", y: "layer", text: (d: { head: number }) => String(d.head), fill: "white", stroke: "black", strokeWidth: 2, fontSize: 10 }),
              ],
            })}
          />
        </figure>
      ))}
      <details>
        <summary>The numbers</summary>
        <table>
          <thead><tr><th>layer</th><th>head</th>{kinds.map(([, title]) => <th>{title}</th>)}</tr></thead>
          <tbody>
            {rows("entropy").map(({ layer, head }) => (
              <tr><td>{layer}</td><td>{head}</td>{kinds.map(([kind]) => <td>{figures[kind][layer][head].toFixed(4)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </details>
    </div>
  );
}

function ColorBar({ scale }: { scale: Scale }) {
  const table = colorTable(scale);
  const ends: Record<string, [string, string]> = { abs: ["0", "1"], row: ["0", "row's largest"], lift: ["1/64 × even", "64 × even"], auto: ["lowest", "highest"] };
  const stops = Array.from({ length: 17 }, (_, i) => css(table, i / 16)).join(",");
  return (
    <span class="colorbar">
      {ends[scale][0]} <span class="bar" style={{ background: `linear-gradient(90deg,${stops})` }} /> {ends[scale][1]} <span class="masked" /> masked
    </span>
  );
}

function LinesView({ t, site }: { t: Trace; site: Site }) {
  const s = state.value;
  const [on, setOn] = useState<boolean[]>(Array.from({ length: site.heads }, () => true));
  const [share, setShare] = useState(0.95);
  const [maps, setMaps] = useState<{ head: number; m: Matrix }[]>([]);
  useEffect(() => {
    let current = true;
    Promise.all(
      Array.from({ length: site.heads }, (_, head) =>
        getArray(`/api/trace/${t.id}/map?${query({ site: site.id, layer: s.l, head })}`).then((a) => ({ head, m: matrixOf(t, site, a.shape, a.values) })),
      ),
    ).then((all) => current && setMaps(all)).catch((e: ApiError) => (failure.value = { message: e.message, field: "" }));
    return () => {
      current = false;
    };
  }, [t.id, site.id, s.l]);
  return (
    <>
      <div class="controls">
        {on.map((yes, head) => (
          <label style={{ color: seriesColor(head) }}>
            <input type="checkbox" checked={yes} onChange={() => setOn(on.map((v, i) => (i === head ? !v : v)))} /> head {head}
          </label>
        ))}
        <label>
          strongest keys reaching {(share * 100).toFixed(0)} %
          <input type="range" min={0.1} max={1} step={0.05} value={share} onInput={(e) => setShare(Number(e.currentTarget.value))} />
        </label>
      </div>
      {maps.length > 0 && <Lines maps={maps.filter(({ head }) => on[head])} share={share} pinned={s.q} onPin={(q) => update({ q })} />}
    </>
  );
}

export function Explore({ runs }: { runs: Run[] }) {
  const s = state.value;
  useEffect(() => {
    const usable = runs.filter((r) => !r.error && r.checkpoints.length > 0);
    if (!runs.some((r) => r.id === s.m) && usable.length) update({ m: usable[0].id, c: "", x: s.m ? "" : s.x });
  }, [runs.length]);
  useEffect(() => void ask(), [s.m, s.c, s.x]);
  const t = trace.value;
  const site = t?.sites.find((x) => x.id === s.s) ?? t?.sites[0];
  const layer = site ? Math.min(s.l, site.layers - 1) : 0, head = site ? Math.min(s.h, site.heads - 1) : 0;
  const m = useMap(t, site, layer, head, s.what);
  const scale: Scale = s.what === "scores" ? "auto" : s.scale;
  const title = site ? `${s.m}: ${siteName[site.id] ?? site.id}, layer ${layer}, head ${head}` : "";
  const keys = (key: string): boolean => {
    if (!site) return false;
    if (key === "]") update({ h: (head + 1) % site.heads });
    else if (key === "[") update({ h: (head + site.heads - 1) % site.heads });
    else if (key === "}") update({ l: (layer + 1) % site.layers });
    else if (key === "{") update({ l: (layer + site.layers - 1) % site.layers });
    else return false;
    return true;
  };
  return (
    <main class="explore">
      <InputPanel runs={runs} />
      <section class="picture">
        {t && !site && <p class="empty">This model has no attention: there is nothing to look at.</p>}
        {t && site && (
          <>
            <div class="controls">
              <div role="tablist" class="tabs">
                {(["map", "lines", "heads"] as const).map((tab) => (
                  <button type="button" role="tab" aria-selected={s.tab === tab} onClick={() => update({ tab })}>
                    {{ map: "Map", lines: "Lines", heads: "Heads" }[tab]}
                  </button>
                ))}
              </div>
              {t.sites.length > 1 && (
                <select aria-label="Kind of attention" value={site.id} onChange={(e) => update({ s: e.currentTarget.value, l: 0, h: 0, q: -1 })}>
                  {t.sites.map((x) => <option value={x.id}>{siteName[x.id] ?? x.id}</option>)}
                </select>
              )}
              {s.tab === "map" && (
                <>
                  <select aria-label="What is shown" value={s.what} onChange={(e) => update({ what: e.currentTarget.value as "weights" })}>
                    <option value="weights">weights</option>
                    <option value="scores">scores</option>
                  </select>
                  {s.what === "weights" && (
                    <select aria-label="Scale of the colours" value={s.scale} onChange={(e) => update({ scale: e.currentTarget.value as "abs" })}>
                      <option value="abs">0 to 1</option>
                      <option value="row">by row</option>
                      <option value="lift">lift over even</option>
                    </select>
                  )}
                  {m && (
                    <span class="export">
                      Save{" "}
                      <button type="button" onClick={() => savePng(title, m, scale)}>PNG</button>
                      <button type="button" onClick={() => saveSvg(title, m, scale)}>SVG</button>
                      <button type="button" onClick={() => saveCsv(title, m)}>CSV</button>
                      <button type="button" onClick={() => saveHtml(title, m, scale)}>HTML</button>
                    </span>
                  )}
                </>
              )}
            </div>
            <h2>{title}</h2>
            {s.tab === "map" && m && (
              <>
                <TintedTokens m={m} row={s.q} />
                <HeatMap m={m} scale={scale} label={title} pinned={s.q} onPin={(q) => update({ q })} onKey={keys} />
                <p class="caption"><ColorBar scale={scale} /> {s.what === "weights" && caption(m)}</p>
              </>
            )}
            {s.tab === "lines" && <LinesView t={t} site={site} key={`${t.id}${site.id}`} />}
            {s.tab === "heads" && <HeadsView t={t} site={site} />}
          </>
        )}
      </section>
      <aside class="panel heads-panel">{t && site && <Thumbnails t={t} site={site} />}</aside>
    </main>
  );
}
