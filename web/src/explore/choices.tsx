// Which attention is looked at: kind, layer, head, weights or scores, and the colours' scale.
import type { Site, Trace } from "../api";
import { narrow } from "../device";
import { numbered, Select } from "../select";
import { type State, state, update } from "../state";
import { chosenHead, isRollout, siteName } from "../trace";

const scales: [State["scale"], string][] = [
  ["largest", "colours to the largest"],
  ["abs", "colours 0 to 1"],
  ["row", "colours by row"],
  ["lift", "relative to uniform"],
];
/** The same beside two or three other menus on a phone; the legend below the map says the rest. */
const shortScales: typeof scales = [
  ["largest", "largest"],
  ["abs", "0 to 1"],
  ["row", "by row"],
  ["lift", "uniform"],
];

function stages(site: Site): [State["what"], string][] {
  const all: [State["what"], string][] = [
    ["weights", "weights"],
    ["scores", "scores"],
    ["rollout", "rollout"],
  ];
  // A rollout multiplies the layers, so queries and keys must be the same tokens.
  const square = site.queries === site.keys && site.rows === site.columns;
  return all.filter(([what]) => (what !== "rollout" || square) && (what !== "scores" || site.scores));
}

export function Choices({ t, site, tab }: { t: Trace; site: Site; tab: State["tab"] }) {
  const { what, scale } = state.value;
  const { layer, head } = chosenHead(site);
  const another = (id: string) => update({ site: id, layer: 0, head: 0, query: -1, what: "weights" });
  const sites = t.sites.map((x): [string, string] => [x.id, siteName(x)]);
  const single = tab !== "heads"; // one layer is looked at
  const rollout = isRollout(tab, what);
  const show = (v: State["what"]) => update({ what: v, ...(v === "rollout" ? { layer: site.layers - 1 } : {}) });
  return (
    <>
      {t.sites.length > 1 && (
        <Select id="site" label="Kind of attention" value={site.id} options={sites} onChange={another} />
      )}
      {site.layers > 1 && single && (
        <Select
          id="layer"
          label="Layer"
          value={String(layer)}
          options={numbered(site.layers, rollout ? "to layer" : "layer")}
          onChange={(v) => update({ layer: Number(v) })}
        />
      )}
      {site.heads > 1 && single && tab !== "lines" && !rollout && (
        <Select
          id="head"
          label="Head"
          value={String(head)}
          options={numbered(site.heads, "head")}
          onChange={(v) => update({ head: Number(v) })}
        />
      )}
      {tab === "map" && stages(site).length > 1 && (
        <Select id="what" label="What is shown" value={what} options={stages(site)} onChange={show} />
      )}
      {tab === "map" && what !== "scores" && (
        <Select
          id="scale"
          label="Scale of the colours"
          value={scale}
          options={narrow && (site.layers > 1 || site.heads > 1) ? shortScales : scales}
          onChange={(v) => update({ scale: v })}
        />
      )}
    </>
  );
}
