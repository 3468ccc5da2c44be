// Explore: type an input, see the output and where the model looked.
import { useEffect, useState } from "preact/hooks";
import type { Run, Site, Trace } from "../api";
import { press } from "../device";
import type { Ends, Matrix } from "../map/matrix";
import { exporting } from "../save/files";
import { current, notice, state, update } from "../state";
import { ask, chosenHead, isMean, isRollout, mapName, siteName, trace } from "../trace";
import { CellView } from "./cell";
import { Choices } from "./choices";
import { HeadsView } from "./heads";
import { InputPanel } from "./input";
import { Inspector } from "./inspector";
import { LinesView } from "./lines";
import { MapView } from "./map_view";
import { PictureView } from "./picture";
import { SideBySide } from "./sides";
import { StepsView, WrittenView } from "./steps";
import { Thumbnails } from "./thumbnails";

/** Name and explanation of each way to look, in the order of the tabs. */
const tabs = {
  picture: [
    "Picture",
    `The patches the chosen query looks at glow; ${press} a patch to ask it instead of the class token.`,
  ],
  map: ["Map", "Each row is a query and shares a weight of 1 among the keys it sees."],
  lines: ["Lines", "A line joins a query on the left with a key it looks at on the right."],
  cell: ["q · k", "From q and k to the weight: every number between one query and one key."],
  heads: ["Heads", "Every head of every layer: a small map, how spread its weights are, how far it looks."],
  steps: ["Steps", "Follow the model token by token: where it looked, and what else it might have written."],
} as const;
export type Tab = keyof typeof tabs;

/** A picture has patches, but no steps; a mean of heads has no heads, queries and keys. */
function tabsOf(t: Trace, site: Site | undefined): Tab[] {
  if (!site) return [];
  const without = [t.picture ? "steps" : "picture", site.scores ? "" : "cell", isMean(site) ? "heads" : ""];
  return (Object.keys(tabs) as Tab[]).filter((tab) => !without.includes(tab));
}

export const chosenSite = (t: Trace): Site | undefined => t.sites.find((x) => x.id === state.value.site) ?? t.sites[0];

function chosenTab(t: Trace, site: Site | undefined): Tab {
  const possible = tabsOf(t, site);
  const { tab } = state.value;
  return tab && possible.includes(tab) ? tab : (possible[0] ?? "steps");
}

function show(tab: Tab): void {
  const scores = tab === "picture" && state.value.what === "scores";
  update({ tab, ...(scores ? { what: "weights" as const } : {}) });
}

function TabBar({ t, site, chosen }: { t: Trace; site: Site; chosen: Tab }) {
  return (
    <div role="tablist" class="tabs" aria-label="Ways to look">
      {tabsOf(t, site).map((tab) => (
        <button type="button" role="tab" aria-selected={tab === chosen} onClick={() => show(tab)}>
          {tabs[tab][0]}
        </button>
      ))}
    </div>
  );
}

function Title({ site, tab }: { site: Site; tab: Tab }) {
  const layer = isMean(site) ? "" : `, layer ${chosenHead(site).layer}`;
  const { what } = state.value;
  const rollout = isRollout(tab, what);
  const one = mapName(site, rollout ? what : "weights");
  const name = tab === "heads" ? siteName(site) : tab === "lines" ? `${siteName(site)}${layer}` : one;
  const about =
    tab === "map" && what === "scores"
      ? "Each row is a query, each cell its score with a key."
      : tab === "map" && rollout
        ? "Each row is a token, each cell the share of it that another brought through the layers."
        : tabs[tab][1];
  return (
    <h2>
      {name}
      <small>{about}</small>
    </h2>
  );
}

interface LookProps {
  t: Trace;
  site: Site | undefined;
  tab: Tab;
  onMap?: (m: Matrix | null) => void;
  onCursor?: (row: number) => void;
  shared?: Ends;
}

/** One trace, looked at in one way; without attention, what it wrote. */
export function Look({ t, site, tab, onMap, onCursor, shared }: LookProps) {
  if (!site) return <WrittenView t={t} key={t.id} />;
  const key = `${t.id}${site.id}`;
  return (
    <>
      {tab === "map" && <MapView t={t} site={site} onMap={onMap} onCursor={onCursor} shared={shared} />}
      {tab === "lines" && <LinesView t={t} site={site} key={key} />}
      {tab === "cell" && <CellView t={t} site={site} />}
      {tab === "heads" && <HeadsView t={t} site={site} />}
      {tab === "steps" && <StepsView t={t} site={site} key={key} />}
      {tab === "picture" && t.picture && <PictureView t={t} site={site} p={t.picture} />}
    </>
  );
}

export function Controls({ t, site, tab }: { t: Trace; site: Site; tab: Tab }) {
  return (
    <div class="controls">
      <TabBar t={t} site={site} chosen={tab} />
      <Choices t={t} site={site} tab={tab} />
    </div>
  );
}

/** Takes the first usable run where the state names none that exists. */
function useSomeRun(runs: Run[]): void {
  useEffect(() => {
    const usable = runs.filter((r) => !r.error && r.checkpoints.length > 0);
    const { model, input } = current();
    if (runs.some((r) => r.id === model) || !usable.length) return;
    if (model) notice.value = `There is no run “${model}” here; ${usable[0].id} is shown instead.`;
    update({ model: usable[0].id, checkpoint: "", input: model ? "" : input });
  }, [runs.length, state.value.model]);
}

/** One run: the picture in the middle, thumbnails and one row in numbers beside it. */
function One({ t }: { t: Trace }) {
  const { query } = state.value;
  const [m, setMap] = useState<Matrix | null>(null);
  const [over, setOver] = useState(-1);
  const site = chosenSite(t);
  const tab = chosenTab(t, site);
  return (
    <>
      <section class="picture">
        {site && <Controls t={t} site={site} tab={tab} />}
        {site && <Title site={site} tab={tab} />}
        <Look t={t} site={site} tab={tab} onMap={setMap} onCursor={setOver} />
      </section>
      {site && tab === "map" && (
        <aside class="panel heads-panel">
          {!isMean(site) && <Thumbnails t={t} site={site} />}
          {m && <Inspector t={t} site={site} {...chosenHead(site)} row={query >= 0 ? query : over} />}
        </aside>
      )}
    </>
  );
}

export function Explore({ runs }: { runs: Run[] }) {
  const s = state.value;
  useSomeRun(runs);
  useEffect(
    () => void ask(),
    [s.model, s.other, s.checkpoint, s.input, s.beginning, s.temperature, s.topK, s.topP, s.seed, s.length],
  );
  const t = trace.value;
  const site = t ? chosenSite(t) : undefined;
  const tab = t ? chosenTab(t, site) : "map";
  useEffect(() => {
    exporting.value = null;
  }, [tab, site?.id, t?.id]);
  return (
    <main class="explore">
      <InputPanel runs={runs} />
      {s.other ? <SideBySide tab={tab} /> : t ? <One t={t} /> : <section class="picture" />}
    </main>
  );
}
