// One head as a map, with its colours explained and a sentence about it.
import { useEffect, useMemo } from "preact/hooks";
import type { Site, Trace } from "../api";
import { HeatMap } from "../map/heatmap";
import { Legend, scaleOf } from "../map/legend";
import { caption, type Ends, type Matrix } from "../map/matrix";
import { exportTrace, mapExport } from "../save/files";
import { state, update } from "../state";
import { chosenHead, mapName, useMap } from "../trace";

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
  onMap?: (m: Matrix | null) => void;
  onCursor?: (row: number) => void;
  shared?: Ends; // of the colours of maps side by side
}

export function MapView({ t, site, onMap, onCursor, shared }: Props) {
  const s = state.value;
  const { layer, head } = chosenHead(site);
  const what = s.what === "scores" && !site.scores ? "weights" : s.what;
  const own = useMap(t, { site, layer, head, what });
  const m = useMemo(() => own && { ...own, shared }, [own, shared]);
  const scale = scaleOf({ kind: what });
  const title = `${t.model}: ${mapName(site, what)}`;
  useEffect(() => {
    if (m) exportTrace(t, mapExport(title, m, scale));
  }, [m, title, scale]);
  useEffect(() => onMap?.(own), [own]);
  useEffect(() => () => onMap?.(null), []);
  if (!m) return <p class="empty">Loading…</p>;
  return (
    <>
      <HeatMap
        m={m}
        scale={scale}
        label={title}
        pinned={s.query}
        pinnedKey={s.key}
        onPin={(query, key) => update({ query, key })}
        onKey={(key) => turn(site, key)}
        onCursor={(c) => onCursor?.(c ? c[0] : -1)}
      />
      <p class="caption">
        <Legend m={m} scale={scale} /> {caption(m)}
      </p>
    </>
  );
}
