// A small map of every layer and head.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { getArray, query, type Site, type Trace } from "../api";
import { at, chosenTheme, colorTable, systemDark } from "../colors";
import { topWeight } from "../map/matrix";
import { state, update } from "../state";
import { chosenHead, useAbout } from "../trace";

interface ThumbProps {
  values: Float32Array;
  size: number;
  top: number; // the weight at which colours end
  label: string;
}

function Thumb({ values, size, top, label }: ThumbProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const c = canvas.current!.getContext("2d")!;
    const image = c.createImageData(size, size);
    const table = colorTable("abs");
    values.forEach((v, i) => image.data.set(table.subarray(at(v / top), at(v / top) + 4), i * 4));
    c.putImageData(image, 0, 0);
  }, [values, top, chosenTheme.value, systemDark.value]);
  return <canvas ref={canvas} width={size} height={size} aria-label={label} />;
}

function meanOf(all: Float32Array, layer: number, heads: number, cells: number): Float32Array {
  const mean = new Float32Array(cells);
  for (let h = 0; h < heads; h++)
    for (let i = 0; i < cells; i++) mean[i] += all[(layer * heads + h) * cells + i] / heads;
  return mean;
}

/** Where the colours of all of them end, so that a head without a strong weight stays pale beside one that has some. */
function topOf(all: Float32Array, size: number): number {
  const seen = all.map((v) => v || NaN); // what is masked comes as 0
  const maps = Array.from({ length: all.length / (size * size) }, (_, k) =>
    topWeight({ rows: size, cols: size, values: seen.subarray(k * size * size, (k + 1) * size * size) }),
  );
  return Math.max(...maps) || 1;
}

interface Props {
  t: Trace;
  site: Site;
  large?: boolean;
}

/** Thumbnails of all layers x heads; click to enlarge. */
export function Thumbnails({ t, site, large = false }: Props) {
  const size = large ? 64 : 32;
  const cells = size * size;
  const thumbs = useAbout(t, `thumbs?${query({ site: site.id, size })}`, getArray)?.values;
  const top = useMemo(
    () => (thumbs && state.value.scale !== "abs" ? topOf(thumbs, size) : 1),
    [thumbs, state.value.scale],
  );
  if (!thumbs || thumbs.length < site.layers * site.heads * cells) return null;
  const chosen = chosenHead(site);
  const show = (layer: number, head: number) => update({ layer, head, ...(large ? { tab: "map" as const } : {}) });
  const thumb = (layer: number, head: number) => {
    const here = layer === chosen.layer && head === chosen.head;
    const begin = (layer * site.heads + head) * cells;
    return (
      <button
        type="button"
        class={here ? "thumb here" : "thumb"}
        aria-label={`Layer ${layer}, head ${head}`}
        aria-pressed={here}
        onClick={() => show(layer, head)}
      >
        <Thumb values={thumbs.subarray(begin, begin + cells)} size={size} top={top} label="" />
        <span>head {head}</span>
      </button>
    );
  };
  const mean = (layer: number) => (
    <div class="thumb mean">
      <Thumb values={meanOf(thumbs, layer, site.heads, cells)} size={size} top={top} label={`Mean of layer ${layer}`} />
      <span>mean</span>
    </div>
  );
  return (
    <div class={large ? "thumbs large" : "thumbs"} role="group" aria-label="All layers and heads" data-ready="true">
      {Array.from({ length: site.layers }, (_, layer) => (
        <div class="thumb-row">
          <span class="thumb-layer">layer {layer}</span>
          <div class="thumb-cells">
            {Array.from({ length: site.heads }, (_, head) => thumb(layer, head))}
            {large && site.heads > 1 && mean(layer)}
          </div>
        </div>
      ))}
    </div>
  );
}
