// Explore: type an input, see the output and where the model looked.
import { useEffect, useState } from "preact/hooks";
import type { Run, Site, Trace } from "./api";
import { type Scale, colorTable, css } from "./colors";
import { exporting, mapExport } from "./export";
import { HeadsView, Thumbnails } from "./heads";
import { HeatMap, TintedTokens } from "./heatmap";
import { InputPanel } from "./input";
import { Inspector } from "./inspector";
import { LinesView } from "./lines";
import { type Matrix, caption } from "./matrix";
import { PictureView } from "./picture";
import { type State, current, state, update } from "./state";
import { StepsView } from "./steps";
import { ask, siteName, trace, useMap } from "./trace";

function ColorBar({ scale }: { scale: Scale }) {
  const table = colorTable(scale);
  const ends: Record<Scale, [string, string]> = { abs: ["0", "1"], row: ["0", "row's largest"], lift: ["1/64 × even", "64 × even"], auto: ["lowest", "highest"], centered: ["−", "+"] };
  const stops = Array.from({ length: 17 }, (_, i) => css(table, i / 16)).join(",");
  return (
    <span class="colorbar">
      {ends[scale][0]} <span class="bar" style={{ background: `linear-gradient(90deg,${stops})` }} /> {ends[scale][1]}
      <span class="masked" /> masked
    </span>
  );
}

const tabNames = { map: "Map", lines: "Lines", heads: "Heads", steps: "Steps", picture: "Picture" } as const;
type Tab = keyof typeof tabNames;

const explains: Record<Tab, string> = {
  map: "Each row is a query and shares a weight of 1 among the keys it sees.",
  lines: "A line joins a query on the left with a key it looks at on the right.",
  heads: "Every head of every layer: its map in small, how spread its weights are, how far it looks.",
  steps: "Follow the model token by token: where it looked, and what else it might have written.",
  picture: "The patches the chosen query looks at glow; click a patch to ask it instead of the class token.",
};

function Choices({ t, site, tab }: { t: Trace; site: Site; tab: Tab }) {
  const s = state.value;
  const layer = Math.min(s.l, site.layers - 1), head = Math.min(s.h, site.heads - 1);
  const numbers = (n: number, name: string) => Array.from({ length: n }, (_, i) => <option value={i}>{`${name} ${i}`}</option>);
  const square = site.queries === site.keys && site.rows === site.columns;
  return (
    <>
      {t.sites.length > 1 && (
        <select id="site" aria-label="Kind of attention" value={site.id} onChange={(e) => update({ s: e.currentTarget.value, l: 0, h: 0, q: -1, what: "weights" })}>
          {t.sites.map((x) => <option value={x.id}>{siteName[x.id] ?? x.id}</option>)}
        </select>
      )}
      {site.layers > 1 && tab !== "heads" && <select id="layer" aria-label="Layer" value={layer} onChange={(e) => update({ l: Number(e.currentTarget.value) })}>{numbers(site.layers, "layer")}</select>}
      {site.heads > 1 && tab !== "heads" && tab !== "lines" && <select id="head" aria-label="Head" value={head} onChange={(e) => update({ h: Number(e.currentTarget.value) })}>{numbers(site.heads, "head")}</select>}
      {tab === "map" && (
        <select id="what" aria-label="What is shown" value={s.what} onChange={(e) => update({ what: e.currentTarget.value as State["what"] })}>
          <option value="weights">weights</option>
          <option value="scores">scores</option>
          {square && <option value="rollout">rollout</option>}
        </select>
      )}
      {tab === "map" && s.what !== "scores" && (
        <select id="scale" aria-label="Scale of the colours" value={s.scale} onChange={(e) => update({ scale: e.currentTarget.value as State["scale"] })}>
          <option value="abs">colours 0 to 1</option>
          <option value="row">colours by row</option>
          <option value="lift">lift over even</option>
        </select>
      )}
    </>
  );
}

function MapView({ t, site, onMap, onCursor }: { t: Trace; site: Site; onMap: (m: Matrix | null) => void; onCursor: (row: number) => void }) {
  const s = state.value;
  const layer = Math.min(s.l, site.layers - 1), head = Math.min(s.h, site.heads - 1);
  const m = useMap(t, { site, layer, head, what: s.what });
  const scale: Scale = s.what === "scores" ? "auto" : s.scale;
  const of = s.what === "rollout" ? `rollout to layer ${layer}` : `layer ${layer}, head ${head}${s.what === "scores" ? ", scores" : ""}`;
  const title = `${s.m}: ${siteName[site.id] ?? site.id}, ${of}`;
  useEffect(() => {
    onMap(m);
    if (m) exporting.value = mapExport(title, m, scale);
  }, [m, title, scale]);
  const keys = (key: string): boolean => {
    if (key === "]") update({ h: (head + 1) % site.heads });
    else if (key === "[") update({ h: (head + site.heads - 1) % site.heads });
    else if (key === "}") update({ l: (layer + 1) % site.layers });
    else if (key === "{") update({ l: (layer + site.layers - 1) % site.layers });
    else return false;
    return true;
  };
  if (!m) return <p class="empty">Loading…</p>;
  return (
    <>
      <TintedTokens m={m} row={s.q} />
      <HeatMap m={m} scale={scale} label={title} pinned={s.q} onPin={(q) => update({ q })} onKey={keys} onCursor={(c) => onCursor(c ? c[0] : -1)} />
      <p class="caption"><ColorBar scale={scale} /> {caption(m)}</p>
    </>
  );
}

export function Explore({ runs }: { runs: Run[] }) {
  const s = state.value;
  const [m, setMap] = useState<Matrix | null>(null);
  const [over, setOver] = useState(-1);
  useEffect(() => {
    const usable = runs.filter((r) => !r.error && r.checkpoints.length > 0);
    const { m, x } = current();
    if (!runs.some((r) => r.id === m) && usable.length) update({ m: usable[0].id, c: "", x: m ? "" : x });
  }, [runs.length, s.m]);
  useEffect(() => void ask(), [s.m, s.c, s.x, s.f]);
  const t = trace.value;
  const site = t?.sites.find((x) => x.id === s.s) ?? t?.sites[0];
  const tabs = (["picture", "map", "lines", "heads", "steps"] as const).filter((tab) => (tab === "picture" ? !!t?.picture : tab !== "steps" || !t?.picture));
  const tab: Tab = s.tab && tabs.includes(s.tab) ? s.tab : tabs[0];
  useEffect(() => {
    exporting.value = null;
  }, [tab, site?.id, t?.id]);
  return (
    <main class="explore">
      <InputPanel runs={runs} />
      <section class="picture">
        {t && !site && <p class="empty">This model has no attention: there is nothing to look at.</p>}
        {t && site && (
          <>
            <div class="controls">
              <div role="tablist" class="tabs" aria-label="Ways to look">
                {tabs.map((name) => (
                  <button type="button" role="tab" aria-selected={tab === name} onClick={() => update({ tab: name, ...(name === "picture" && s.what === "scores" ? { what: "weights" as const } : {}) })}>{tabNames[name]}</button>
                ))}
              </div>
              <Choices t={t} site={site} tab={tab} />
            </div>
            <h2>
              {siteName[site.id] ?? site.id}{tab !== "heads" && `, layer ${Math.min(s.l, site.layers - 1)}`}{tab !== "heads" && tab !== "lines" && `, head ${Math.min(s.h, site.heads - 1)}`}
              <small>{explains[tab]}</small>
            </h2>
            {tab === "map" && <MapView t={t} site={site} onMap={setMap} onCursor={setOver} />}
            {tab === "lines" && <LinesView t={t} site={site} key={`${t.id}${site.id}`} />}
            {tab === "heads" && <HeadsView t={t} site={site} />}
            {tab === "steps" && <StepsView t={t} site={site} key={`${t.id}${site.id}`} />}
            {tab === "picture" && t.picture && <PictureView t={t} site={site} />}
          </>
        )}
      </section>
      {t && site && tab === "map" && (
        <aside class="panel heads-panel">
          <Thumbnails t={t} site={site} />
          {m && <Inspector t={t} site={site} layer={Math.min(s.l, site.layers - 1)} head={Math.min(s.h, site.heads - 1)} m={m} row={s.q >= 0 ? s.q : over} />}
        </aside>
      )}
    </main>
  );
}
