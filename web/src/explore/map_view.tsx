// One head as a map, with its colours explained and a sentence about it.
import { useEffect } from "preact/hooks";
import type { Site, Trace } from "../api";
import { colorTable, css, type Scale } from "../colors";
import { HeatMap } from "../map/heatmap";
import { caption, type Matrix } from "../map/matrix";
import { TintedTokens } from "../map/tinted";
import { exporting, mapExport } from "../save/files";
import { state, update } from "../state";
import { chosenHead, siteName, useMap } from "../trace";

const ends: Record<Scale, [string, string]> = {
  abs: ["0", "1"],
  row: ["0", "row's largest"],
  lift: ["1/64 × even", "64 × even"],
  auto: ["lowest", "highest"],
  centered: ["−", "+"],
};

function ColorBar({ scale }: { scale: Scale }) {
  const table = colorTable(scale);
  const stops = Array.from({ length: 17 }, (_, i) => css(table, i / 16)).join(",");
  return (
    <span class="colorbar">
      {ends[scale][0]} <span class="bar" style={{ background: `linear-gradient(90deg,${stops})` }} /> {ends[scale][1]}
      <span class="masked" /> masked
    </span>
  );
}

/** The brackets turn over the heads, the braces over the layers. */
function turn(site: Site, key: string): boolean {
  const { layer, head } = chosenHead(site);
  if (key === "]") update({ head: (head + 1) % site.heads });
  else if (key === "[") update({ head: (head + site.heads - 1) % site.heads });
  else if (key === "}") update({ layer: (layer + 1) % site.layers });
  else if (key === "{") update({ layer: (layer + site.layers - 1) % site.layers });
  else return false;
  return true;
}

interface Props {
  t: Trace;
  site: Site;
  onMap: (m: Matrix | null) => void;
  onCursor: (row: number) => void;
}

export function MapView({ t, site, onMap, onCursor }: Props) {
  const s = state.value;
  const { layer, head } = chosenHead(site);
  const m = useMap(t, { site, layer, head, what: s.what });
  const scale: Scale = s.what === "scores" ? "auto" : s.scale;
  const one = `layer ${layer}, head ${head}${s.what === "scores" ? ", scores" : ""}`;
  const title = `${s.model}: ${siteName(site)}, ${s.what === "rollout" ? `rollout to layer ${layer}` : one}`;
  useEffect(() => {
    onMap(m);
    if (m) exporting.value = mapExport(title, m, scale);
  }, [m, title, scale]);
  if (!m) return <p class="empty">Loading…</p>;
  return (
    <>
      <TintedTokens m={m} row={s.query} />
      <HeatMap
        m={m}
        scale={scale}
        label={title}
        pinned={s.query}
        onPin={(query) => update({ query })}
        onKey={(key) => turn(site, key)}
        onCursor={(c) => onCursor(c ? c[0] : -1)}
      />
      <p class="caption">
        <ColorBar scale={scale} /> {caption(m)}
      </p>
    </>
  );
}
