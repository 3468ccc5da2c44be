// Pictures: where a vision model looks, patch by patch, over the picture it saw.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Picture, Site, Trace } from "./api";
import { chosenTheme, colorTable, css, inks, systemDark } from "./colors";
import { exporting, svgOf, escape } from "./export";
import { type Matrix, cell, csvLine, shortest } from "./matrix";
import { state, update } from "./state";
import { siteName, useMap } from "./trace";

function bytesOf(p: Picture): Uint8Array {
  return Uint8Array.from(atob(p.pixels), (c) => c.charCodeAt(0));
}

/** The picture itself, one pixel a pixel. */
export function pictureCanvas(p: Picture): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = p.width;
  canvas.height = p.height;
  const c = canvas.getContext("2d")!;
  const image = c.createImageData(p.width, p.height), bytes = bytesOf(p);
  for (let i = 0; i < p.width * p.height; i++) {
    for (let b = 0; b < 3; b++) image.data[i * 4 + b] = bytes[i * p.channels + (p.channels === 3 ? b : 0)];
    image.data[i * 4 + 3] = 255;
  }
  c.putImageData(image, 0, 0);
  return canvas;
}

const glow = [255, 140, 0]; // stands out from grey pictures, light and dark

/** What one query gives every token; query -1 is the class token, or the mean of all where there is none. */
function weightsOf(m: Matrix, p: Picture, query: number): Float32Array {
  if (query >= 0 || p.first_patch > 0) return m.values.subarray(Math.max(0, query) * m.cols, (Math.max(0, query) + 1) * m.cols);
  const mean = new Float32Array(m.cols);
  for (let i = 0; i < m.rows; i++) for (let j = 0; j < m.cols; j++) mean[j] += (cell(m, i, j) || 0) / m.rows;
  return mean;
}

interface Drawn {
  p: Picture;
  weights: Float32Array | number[]; // a token each
  query: number;
  side: number;
  grid: boolean;
}

/** The picture dimmed, each patch as bright and orange as its weight is large. */
export function drawPicture(c: CanvasRenderingContext2D, { p, weights, query, side, grid }: Drawn): void {
  const scale = side / Math.max(p.width, p.height);
  const w = p.width * scale, h = p.height * scale;
  c.imageSmoothingEnabled = false;
  c.drawImage(pictureCanvas(p), 0, 0, w, h);
  const pw = w / p.patch_columns, ph = h / p.patch_rows;
  const patches = p.patch_rows * p.patch_columns;
  let top = 0;
  for (let k = 0; k < patches; k++) top = Math.max(top, weights[p.first_patch + k] || 0);
  for (let k = 0; k < patches; k++) {
    const x = (k % p.patch_columns) * pw, y = Math.floor(k / p.patch_columns) * ph;
    const v = top > 0 ? (weights[p.first_patch + k] || 0) / top : 0;
    c.fillStyle = `rgba(${glow.join(",")},${0.75 * v})`;
    c.fillRect(x, y, pw, ph);
  }
  if (grid) {
    c.strokeStyle = "rgba(128,128,128,0.45)";
    c.lineWidth = 1;
    c.beginPath();
    for (let i = 1; i < p.patch_rows; i++) {
      c.moveTo(0, Math.round(i * ph) + 0.5);
      c.lineTo(w, Math.round(i * ph) + 0.5);
    }
    for (let j = 1; j < p.patch_columns; j++) {
      c.moveTo(Math.round(j * pw) + 0.5, 0);
      c.lineTo(Math.round(j * pw) + 0.5, h);
    }
    c.stroke();
  }
  const patch = query - p.first_patch;
  if (patch >= 0 && grid) {
    c.strokeStyle = inks().strong;
    c.lineWidth = 2;
    c.strokeRect((patch % p.patch_columns) * pw, Math.floor(patch / p.patch_columns) * ph, pw, ph);
  }
}

function Over({ p, m, query, side, grid, onPatch }: { p: Picture; m: Matrix; query: number; side: number; grid: boolean; onPatch?: (token: number) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const h = Math.round((side * p.height) / Math.max(p.width, p.height)), w = Math.round((side * p.width) / Math.max(p.width, p.height));
  useEffect(() => {
    const ratio = devicePixelRatio || 1, target = canvas.current!;
    target.width = w * ratio;
    target.height = h * ratio;
    const c = target.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawPicture(c, { p, weights: weightsOf(m, p, query), query, side, grid });
  }, [p, m, query, side, chosenTheme.value, systemDark.value]);
  const patchAt = (e: MouseEvent): number => {
    const r = canvas.current!.getBoundingClientRect();
    const j = Math.floor(((e.clientX - r.left) / r.width) * p.patch_columns), i = Math.floor(((e.clientY - r.top) / r.height) * p.patch_rows);
    return p.first_patch + Math.max(0, Math.min(p.patch_rows - 1, i)) * p.patch_columns + Math.max(0, Math.min(p.patch_columns - 1, j));
  };
  return (
    <canvas
      ref={canvas} style={{ width: `${w}px`, height: `${h}px` }} tabIndex={onPatch ? 0 : -1} role="img"
      aria-label={`Picture with the weights of token ${query} laid over it`}
      onClick={(e) => onPatch?.(patchAt(e))}
      onKeyDown={(e) => {
        if (!onPatch) return;
        const last = p.first_patch + p.patch_rows * p.patch_columns - 1;
        const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: p.patch_columns, ArrowUp: -p.patch_columns };
        if (e.key === "Escape") onPatch(-1);
        else if (moves[e.key]) onPatch(query < p.first_patch ? p.first_patch : Math.max(p.first_patch, Math.min(last, query + moves[e.key])));
        else return;
        e.preventDefault();
      }}
    />
  );
}

export function PictureView({ t, site }: { t: Trace; site: Site }) {
  const s = state.value, p = t.picture!;
  const layer = Math.min(s.l, site.layers - 1), head = Math.min(s.h, site.heads - 1);
  const rollout = s.what === "rollout";
  const m = useMap(t, { site, layer, head, what: rollout ? "rollout" : "weights" });
  const query = s.q < p.first_patch ? -1 : Math.min(site.queries - 1, s.q);
  const asked = query >= 0 ? `patch ${query - p.first_patch}` : p.first_patch > 0 ? "the class token" : "all patches";
  const title = `${s.m}: ${siteName[site.id] ?? site.id}, ${rollout ? `rollout to layer ${layer}` : `layer ${layer}, head ${head}`}, query ${asked}`;
  const weights = m ? weightsOf(m, p, query) : new Float32Array();
  const box = useRef<HTMLDivElement>(null);
  const [side, setSide] = useState(336);
  useEffect(() => {
    const fit = () => box.current && setSide(Math.max(224, Math.min(448, Math.floor(box.current.clientWidth / 28) * 28)));
    fit();
    addEventListener("resize", fit);
    return () => removeEventListener("resize", fit);
  }, []);
  const sum = (from: number, to: number) => weights.subarray(from, to).reduce((a, v) => a + (v || 0), 0);
  const patches = p.first_patch + p.patch_rows * p.patch_columns;
  const own = sum(0, p.first_patch), onPatches = sum(p.first_patch, patches);
  const top = weights.subarray(p.first_patch, patches).reduce((a, v, k) => (v > a.v ? { v, k } : a), { v: -1, k: 0 });
  const own_share = p.first_patch > 0 ? `, ${(100 * own).toFixed(1)} % on the class token` : "";
  const text = `${(100 * onPatches).toFixed(1)} % of the weight of ${asked} lies on the picture${own_share}; the brightest patch, row ${Math.floor(top.k / p.patch_columns)}, column ${top.k % p.patch_columns}, has ${top.v.toFixed(4)}.`;
  useEffect(() => {
    if (!m) return;
    exporting.value = {
      title, caption: text,
      svg: () => {
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 448;
        drawPicture(canvas.getContext("2d")!, { p, weights, query, side: 448, grid: true });
        return svgOf(464, 500, `<text x="8" y="20" font-weight="bold">${escape(title)}</text><image x="8" y="32" width="448" height="448" href="${canvas.toDataURL("image/png")}"/>`);
      },
      csv: () => [csvLine(["token", "row", "column", "weight"]), ...Array.from({ length: m.cols }, (_, j) => {
        const k = j - p.first_patch;
        return csvLine([j, k < 0 ? "class" : Math.floor(k / p.patch_columns), k < 0 ? "class" : k % p.patch_columns, Number.isNaN(weights[j]) ? "masked" : shortest(weights[j])]);
      })].join("\n") + "\n",
    };
  }, [m, query]);
  return (
    <div class="picture-view" ref={box} data-ready={m ? "true" : "false"}>
      <div class="controls">
        <label>
          <input type="checkbox" checked={rollout} onChange={() => update({ what: rollout ? "weights" : "rollout" })} /> rollout through the layers
        </label>
        <button type="button" disabled={query < 0} onClick={() => update({ q: -1 })}>{p.first_patch > 0 ? "Ask the class token" : "Ask all patches"}</button>
      </div>
      {m && (
        <div class="both">
          <div>
          <Over p={p} m={m} query={query} side={side} grid onPatch={(q) => update({ q })} />
          <p class="caption">{text} {rollout && "A rollout multiplies the layers: half of each layer's mean attention, half of what passes by it."}</p>
          {p.first_patch > 0 && <div class="own">
            class token <span class="bar-cell"><span class="bar" style={{ width: `${100 * own}%`, background: css(colorTable("abs"), 0.6) }} /></span> <span class="n">{own.toFixed(4)}</span>
          </div>}
          </div>
          {!rollout && <Multiples t={t} site={site} query={query} />}
        </div>
      )}
    </div>
  );
}

/** The same query in every layer and head. */
function Multiples({ t, site, query }: { t: Trace; site: Site; query: number }) {
  return (
    <div class="multiples">
      {Array.from({ length: site.layers }, (_, layer) => (
        <div class="thumb-row">
          <span class="thumb-layer">layer {layer}</span>
          <div class="thumb-cells">{Array.from({ length: site.heads }, (_, head) => <Multiple t={t} site={site} layer={layer} head={head} query={query} />)}</div>
        </div>
      ))}
    </div>
  );
}

function Multiple({ t, site, layer, head, query }: { t: Trace; site: Site; layer: number; head: number; query: number }) {
  const m = useMap(t, { site, layer, head });
  const here = state.value.l === layer && state.value.h === head;
  return (
    <button type="button" class={here ? "thumb here" : "thumb"} aria-label={`Layer ${layer}, head ${head}`} aria-pressed={here} onClick={() => update({ l: layer, h: head })}>
      {m && <Over p={t.picture!} m={m} query={query} side={64} grid={false} />}
      <span>head {head}</span>
    </button>
  );
}
