// Pictures: where a vision model looks, patch by patch, over the picture it saw.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Picture, Site, Trace } from "../api";
import { freeCanvas, sharpContext } from "../canvas";
import { chosenTheme, colorTable, css, systemDark } from "../colors";
import { type Matrix, rolloutMeaning } from "../map/matrix";
import { csv, csvWeight } from "../save/csv";
import { exportTrace } from "../save/files";
import { titled } from "../save/svg";
import { state, update } from "../state";
import { chosenHead, mapName, useMap } from "../trace";
import { drawPicture, patchCount, pictureSize, weightsOf } from "./picture_draw";

const clamp = (v: number, low: number, high: number) => Math.max(low, Math.min(high, v));

/** The token of the patch at a point, in shares of the picture's width and height. */
function tokenAt(p: Picture, x: number, y: number): number {
  const i = clamp(Math.floor(y * p.patch_rows), 0, p.patch_rows - 1);
  const j = clamp(Math.floor(x * p.patch_columns), 0, p.patch_columns - 1);
  return p.first_patch + i * p.patch_columns + j;
}

/** The token a key leads to, -1 for Escape, undefined for other keys. */
function tokenByKey(p: Picture, query: number, key: string): number | undefined {
  const moves: Record<string, number> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: p.patch_columns,
    ArrowUp: -p.patch_columns,
  };
  if (key === "Escape") return -1;
  if (!moves[key]) return undefined;
  const last = p.first_patch + patchCount(p) - 1;
  return query < p.first_patch ? p.first_patch : clamp(query + moves[key], p.first_patch, last);
}

interface OverProps {
  p: Picture;
  m: Matrix;
  query: number;
  side: number;
  onPatch?: (token: number) => void; // without it, a small picture that only shows
}

function Over({ p, m, query, side, onPatch }: OverProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = pictureSize(p, side);
  const width = Math.round(size.width);
  const height = Math.round(size.height);
  useEffect(() => {
    const c = sharpContext(canvas.current!, width, height);
    drawPicture(c, { p, weights: weightsOf(m, p, query), query, side, grid: !!onPatch });
  }, [p, m, query, side, chosenTheme.value, systemDark.value]);
  const click = (e: MouseEvent) => {
    const r = canvas.current!.getBoundingClientRect();
    onPatch?.(tokenAt(p, (e.clientX - r.left) / r.width, (e.clientY - r.top) / r.height));
  };
  const press = (e: KeyboardEvent) => {
    const token = onPatch && tokenByKey(p, query, e.key);
    if (!onPatch || token === undefined) return;
    onPatch(token);
    e.preventDefault();
  };
  return (
    <canvas
      ref={canvas}
      style={{ width: `${width}px`, height: `${height}px` }}
      tabIndex={onPatch ? 0 : -1}
      role="img"
      aria-label={`Picture with the weights of token ${query} laid over it`}
      onClick={click}
      onKeyDown={press}
    />
  );
}

/** As many pixels as fit the box, a multiple of 28. */
function useSide() {
  const box = useRef<HTMLDivElement>(null);
  const [side, setSide] = useState(336);
  useEffect(() => {
    const fit = () => box.current && setSide(clamp(Math.floor(box.current.clientWidth / 28) * 28, 224, 448));
    fit();
    addEventListener("resize", fit);
    return () => removeEventListener("resize", fit);
  }, []);
  return { box, side };
}

const sum = (weights: Float32Array) => weights.reduce((a, v) => a + (v || 0), 0);

function caption(p: Picture, weights: Float32Array, asked: string): string {
  const patches = weights.subarray(p.first_patch, p.first_patch + patchCount(p));
  const per = (share: number) => `${(100 * share).toFixed(1)}%`;
  const own = p.first_patch > 0 ? `, ${per(sum(weights.subarray(0, p.first_patch)))} on the class token` : "";
  const top = patches.reduce((a, v, k) => (v > a.v ? { v, k } : a), { v: -1, k: 0 });
  const place = `row ${Math.floor(top.k / p.patch_columns)}, column ${top.k % p.patch_columns}`;
  const on = `${per(sum(patches))} of the weight of ${asked} lies on the picture${own}`;
  return `${on}; the brightest patch, ${place}, has ${top.v.toFixed(4)}.`;
}

function pictureSvg(title: string, p: Picture, weights: Float32Array, query: number): string {
  const { canvas, c } = freeCanvas(448, 448);
  drawPicture(c, { p, weights, query, side: 448, grid: true });
  const image = `<image x="8" y="8" width="448" height="448" href="${canvas.toDataURL("image/png")}"/>`;
  return titled(title, { width: 464, height: 464 }, image);
}

function pictureCsv(p: Picture, weights: Float32Array): string {
  const place = (k: number) => (k < 0 ? ["class", "class"] : [Math.floor(k / p.patch_columns), k % p.patch_columns]);
  const rows = Array.from(weights, (v, j) => [j, ...place(j - p.first_patch), csvWeight(v)]);
  return csv([["token", "row", "column", "weight"], ...rows]);
}

export function PictureView({ t, site, p }: { t: Trace; site: Site; p: Picture }) {
  const s = state.value;
  const { layer, head } = chosenHead(site);
  const rollout = s.what === "rollout";
  const m = useMap(t, { site, layer, head, what: rollout ? "rollout" : "weights" });
  const { box, side } = useSide();
  const query = s.query < p.first_patch ? -1 : Math.min(site.queries - 1, s.query);
  const asked = query >= 0 ? `patch ${query - p.first_patch}` : p.first_patch > 0 ? "the class token" : "all patches";
  const title = `${t.model}: ${mapName(site, rollout ? "rollout" : "weights")}, query ${asked}`;
  const weights = m ? weightsOf(m, p, query) : new Float32Array();
  const text = caption(p, weights, asked);
  useEffect(() => {
    if (!m) return;
    exportTrace(t, {
      title,
      caption: text,
      svg: (bare) => pictureSvg(bare ? "" : title, p, weights, query),
      csv: () => pictureCsv(p, weights),
    });
  }, [m, query]);
  return (
    <div class="picture-view" ref={box} data-ready={m ? "true" : "false"}>
      <div class="controls">
        <label>
          <input
            type="checkbox"
            checked={rollout}
            onChange={() => update(rollout ? { what: "weights" } : { what: "rollout", layer: site.layers - 1 })}
          />{" "}
          rollout through the layers
        </label>
        <button type="button" disabled={query < 0} onClick={() => update({ query: -1 })}>
          {p.first_patch > 0 ? "Ask the class token" : "Ask all patches"}
        </button>
      </div>
      {m && (
        <div class="both">
          <div>
            <Over p={p} m={m} query={query} side={side} onPatch={(token) => update({ query: token })} />
            <p class="caption">
              {text} {rollout && rolloutMeaning}
            </p>
            {p.first_patch > 0 && <ClassToken weight={sum(weights.subarray(0, p.first_patch))} />}
          </div>
          {!rollout && <Multiples t={t} site={site} p={p} query={query} />}
        </div>
      )}
    </div>
  );
}

function ClassToken({ weight }: { weight: number }) {
  return (
    <div class="own">
      class token{" "}
      <span class="bar-cell">
        <span class="bar" style={{ width: `${100 * weight}%`, background: css(colorTable("abs"), 0.6) }} />
      </span>{" "}
      <span class="n">{weight.toFixed(4)}</span>
    </div>
  );
}

interface MultiplesProps {
  t: Trace;
  site: Site;
  p: Picture;
  query: number;
}

/** The same query in every layer and head. */
function Multiples(props: MultiplesProps) {
  const { layers, heads } = props.site;
  return (
    <div class="multiples">
      {Array.from({ length: layers }, (_, layer) => (
        <div class="thumb-row">
          <span class="thumb-layer">layer {layer}</span>
          <div class="thumb-cells">
            {Array.from({ length: heads }, (_, head) => (
              <Multiple {...props} layer={layer} head={head} />
            ))}
          </div>
        </div>
      ))}
    </div>
  );
}

function Multiple({ t, site, p, query, layer, head }: MultiplesProps & { layer: number; head: number }) {
  const m = useMap(t, { site, layer, head });
  const here = state.value.layer === layer && state.value.head === head;
  return (
    <button
      type="button"
      class={here ? "thumb here" : "thumb"}
      aria-label={`Layer ${layer}, head ${head}`}
      aria-pressed={here}
      onClick={() => update({ layer, head })}
    >
      {m && <Over p={p} m={m} query={query} side={64} />}
      <span>head {head}</span>
    </button>
  );
}
