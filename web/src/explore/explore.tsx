// Explore: type an input, see the output and where the model looked.
import { useEffect, useState } from "preact/hooks";
import type { Run, Site, Trace } from "../api";
import type { Matrix } from "../map/matrix";
import { exporting } from "../save/files";
import { current, state, update } from "../state";
import { ask, chosenHead, siteName, trace } from "../trace";
import { Choices } from "./choices";
import { HeadsView } from "./heads";
import { InputPanel } from "./input";
import { Inspector } from "./inspector";
import { LinesView } from "./lines";
import { MapView } from "./map_view";
import { PictureView } from "./picture";
import { StepsView } from "./steps";
import { Thumbnails } from "./thumbnails";

/** Name and explanation of each way to look, in the order of the tabs. */
const tabs = {
  picture: [
    "Picture",
    "The patches the chosen query looks at glow; click a patch to ask it instead of the class token.",
  ],
  map: ["Map", "Each row is a query and shares a weight of 1 among the keys it sees."],
  lines: ["Lines", "A line joins a query on the left with a key it looks at on the right."],
  heads: ["Heads", "Every head of every layer: a small map, how spread its weights are, how far it looks."],
  steps: ["Steps", "Follow the model token by token: where it looked, and what else it might have written."],
} as const;
type Tab = keyof typeof tabs;

/** A picture has patches, but no steps. */
const tabsOf = (t: Trace | null): Tab[] =>
  (Object.keys(tabs) as Tab[]).filter((tab) => tab !== (t?.picture ? "steps" : "picture"));

function show(tab: Tab): void {
  const scores = tab === "picture" && state.value.what === "scores";
  update({ tab, ...(scores ? { what: "weights" as const } : {}) });
}

function TabBar({ t, chosen }: { t: Trace; chosen: Tab }) {
  return (
    <div role="tablist" class="tabs" aria-label="Ways to look">
      {tabsOf(t).map((tab) => (
        <button type="button" role="tab" aria-selected={tab === chosen} onClick={() => show(tab)}>
          {tabs[tab][0]}
        </button>
      ))}
    </div>
  );
}

function Title({ site, tab }: { site: Site; tab: Tab }) {
  const { layer, head } = chosenHead(site);
  return (
    <h2>
      {siteName(site)}
      {tab !== "heads" && `, layer ${layer}`}
      {tab !== "heads" && tab !== "lines" && `, head ${head}`}
      <small>{tabs[tab][1]}</small>
    </h2>
  );
}

/** Takes the first usable run where the state names none that exists. */
function useSomeRun(runs: Run[]): void {
  useEffect(() => {
    const usable = runs.filter((r) => !r.error && r.checkpoints.length > 0);
    const { model, input } = current();
    if (runs.some((r) => r.id === model) || !usable.length) return;
    update({ model: usable[0].id, checkpoint: "", input: model ? "" : input });
  }, [runs.length, state.value.model]);
}

export function Explore({ runs }: { runs: Run[] }) {
  const s = state.value;
  const [m, setMap] = useState<Matrix | null>(null);
  const [over, setOver] = useState(-1);
  useSomeRun(runs);
  useEffect(() => void ask(), [s.model, s.checkpoint, s.input, s.beginning]);
  const t = trace.value;
  const site = t?.sites.find((x) => x.id === s.site) ?? t?.sites[0];
  const possible = tabsOf(t);
  const tab: Tab = s.tab && possible.includes(s.tab) ? s.tab : possible[0];
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
              <TabBar t={t} chosen={tab} />
              <Choices t={t} site={site} tab={tab} />
            </div>
            <Title site={site} tab={tab} />
            {tab === "map" && <MapView t={t} site={site} onMap={setMap} onCursor={setOver} />}
            {tab === "lines" && <LinesView t={t} site={site} key={`${t.id}${site.id}`} />}
            {tab === "heads" && <HeadsView t={t} site={site} />}
            {tab === "steps" && <StepsView t={t} site={site} key={`${t.id}${site.id}`} />}
            {tab === "picture" && t.picture && <PictureView t={t} site={site} p={t.picture} />}
          </>
        )}
      </section>
      {t && site && tab === "map" && (
        <aside class="panel heads-panel">
          <Thumbnails t={t} site={site} />
          {m && <Inspector t={t} site={site} {...chosenHead(site)} m={m} row={s.query >= 0 ? s.query : over} />}
        </aside>
      )}
    </main>
  );
}
