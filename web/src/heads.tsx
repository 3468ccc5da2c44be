// All heads at once: thumbnails of every layer x head, and figures of each head as dots.
import * as Plot from "@observablehq/plot";
import { useEffect, useRef } from "preact/hooks";
import { type Figures, type Site, type Trace, getArray, getJson, query } from "./api";
import { Chart } from "./chart";
import { at, chosenTheme, colorTable, inkOn, seriesColor, systemDark } from "./colors";
import { chartsSvg, exporting } from "./export";
import { csvLine } from "./matrix";
import { state, update } from "./state";
import { siteName, useAbout } from "./trace";

type Array4 = { shape: number[]; values: Float32Array };

function Thumb({ values, size, label }: { values: Float32Array; size: number; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const c = canvas.current!.getContext("2d")!;
    const image = c.createImageData(size, size), table = colorTable("abs");
    for (let i = 0; i < size * size; i++) {
      const k = at(values[i]);
      for (let b = 0; b < 4; b++) image.data[i * 4 + b] = table[k + b];
    }
    c.putImageData(image, 0, 0);
  }, [values, chosenTheme.value, systemDark.value]);
  return <canvas ref={canvas} width={size} height={size} aria-label={label} />;
}

function meanOf(all: Float32Array, layer: number, heads: number, cells: number): Float32Array {
  const mean = new Float32Array(cells);
  for (let h = 0; h < heads; h++) for (let i = 0; i < cells; i++) mean[i] += all[(layer * heads + h) * cells + i] / heads;
  return mean;
}

/** Thumbnails of all layers x heads; click to enlarge. */
export function Thumbnails({ t, site, large = false }: { t: Trace; site: Site; large?: boolean }) {
  const size = large ? 64 : 32, cells = size * size;
  const thumbs = useAbout<Array4>(t, `thumbs?${query({ site: site.id, size })}`, getArray);
  if (!thumbs || thumbs.values.length < site.layers * site.heads * cells) return null;
  const { l, h } = state.value;
  return (
    <div class={large ? "thumbs large" : "thumbs"} role="group" aria-label="All layers and heads" data-ready="true">
      {Array.from({ length: site.layers }, (_, layer) => (
        <div class="thumb-row">
          <span class="thumb-layer">layer {layer}</span>
          <div class="thumb-cells">
            {Array.from({ length: site.heads }, (_, head) => {
              const here = layer === Math.min(l, site.layers - 1) && head === Math.min(h, site.heads - 1);
              const begin = (layer * site.heads + head) * cells;
              return (
                <button type="button" class={here ? "thumb here" : "thumb"} aria-label={`Layer ${layer}, head ${head}`} aria-pressed={here} onClick={() => update({ l: layer, h: head, ...(large ? { tab: "map" as const } : {}) })}>
                  <Thumb values={thumbs.values.subarray(begin, begin + cells)} size={size} label="" />
                  <span>head {head}</span>
                </button>
              );
            })}
            {large && site.heads > 1 && (
              <div class="thumb mean">
                <Thumb values={meanOf(thumbs.values, layer, site.heads, cells)} size={size} label={`Mean of layer ${layer}`} />
                <span>mean</span>
              </div>
            )}
          </div>
        </div>
      ))}
    </div>
  );
}

const kinds: [keyof Figures, string][] = [
  ["entropy", "entropy, as a share of the possible"],
  ["distance", "mean distance looked, in tokens"],
  ["largest", "mean largest weight of a row"],
  ["self", "mean weight on the own position"],
  ["first", "mean weight on the first key"],
];

export function HeadsView({ t, site }: { t: Trace; site: Site }) {
  const figures = useAbout<Figures>(t, `figures?${query({ site: site.id })}`, getJson<Figures>);
  const box = useRef<HTMLDivElement>(null);
  const title = `${state.value.m}: ${siteName[site.id] ?? site.id}, every head`;
  useEffect(() => {
    if (!figures) return;
    const all = figures.entropy.flatMap((heads, layer) => heads.map((_, head) => ({ layer, head })));
    exporting.value = {
      title, caption: sentence(figures),
      svg: () => chartsSvg(title, Array.from(box.current!.querySelectorAll("figure")).map((f) => ({ label: f.querySelector("figcaption")!.textContent ?? "", svg: f.querySelector("svg")! }))),
      csv: () => [csvLine(["layer", "head", ...kinds.map(([k]) => k)]), ...all.map(({ layer, head }) => csvLine([layer, head, ...kinds.map(([k]) => figures[k][layer][head])]))].join("\n") + "\n",
    };
  }, [figures]);
  return (
    <div class="heads" ref={box}>
      <Thumbnails t={t} site={site} large />
      {!figures ? <p>Counting…</p> : (
        <>
          <p class="caption">{sentence(figures)} Each dot below is a head.</p>
          <div class="figures">{kinds.map(([kind, name]) => <Dots kind={kind} name={name} figures={figures} />)}</div>
          <details>
            <summary>The numbers</summary>
            <div class="scroll">
              <table>
                <thead><tr><th>layer</th><th>head</th>{kinds.map(([, name]) => <th>{name}</th>)}</tr></thead>
                <tbody>
                  {figures.entropy.flatMap((heads, layer) => heads.map((_, head) => (
                    <tr><td>{layer}</td><td>{head}</td>{kinds.map(([kind]) => <td class="n">{figures[kind][layer][head].toFixed(4)}</td>)}</tr>
                  )))}
                </tbody>
              </table>
            </div>
          </details>
        </>
      )}
    </div>
  );
}

function sentence(f: Figures): string {
  let sharp = { layer: 0, head: 0, value: 2 }, soft = { layer: 0, head: 0, value: -1 };
  f.entropy.forEach((heads, layer) => heads.forEach((value, head) => {
    if (value < sharp.value) sharp = { layer, head, value };
    if (value > soft.value) soft = { layer, head, value };
  }));
  const name = (x: { layer: number; head: number; value: number }) => `layer ${x.layer} head ${x.head} (entropy ${(100 * x.value).toFixed(0)} % of the possible)`;
  return sharp.layer === soft.layer && sharp.head === soft.head ? `The only head is ${name(sharp)}.` : `The sharpest head is ${name(sharp)}, the most even one ${name(soft)}.`;
}

interface Dot {
  layer: number;
  head: number;
  value: number;
}

function Dots({ kind, name, figures }: { kind: keyof Figures; name: string; figures: Figures }) {
  const rows: Dot[] = figures[kind].flatMap((heads, layer) => heads.map((value, head) => ({ layer, head, value })));
  const layers = figures[kind].length;
  const share = kind !== "distance";
  const heads = figures[kind].reduce((a, l) => Math.max(a, l.length), 1);
  // Heads of a layer stand one below the other, so that equal values do not hide each other.
  const row = (d: Dot) => d.layer + ((d.head + 0.5) / heads - 0.5) * (heads > 1 ? 0.8 : 0);
  return (
    <figure>
      <figcaption>{name}</figcaption>
      <Chart
        label={`${name} of every head`} deps={[figures, kind]}
        options={() => ({
          height: 34 + layers * Math.max(26, 15 * heads), marginLeft: 56, marginTop: 6, marginRight: 16,
          x: { label: null, grid: true, ...(share ? { domain: [0, 1] } : { nice: true, zero: true }) },
          y: { label: null, domain: [-0.5, layers - 0.5], reverse: true, ticks: Array.from({ length: layers }, (_, i) => i), tickFormat: (d: number) => `layer ${d}` },
          marks: [
            Plot.dot(rows, { x: "value", y: row, r: 7, fill: (d: Dot) => seriesColor(d.head), title: (d: Dot) => `layer ${d.layer}, head ${d.head}: ${d.value.toFixed(4)}` }),
            Plot.text(rows, { x: "value", y: row, text: (d: Dot) => String(d.head), fill: (d: Dot) => inkOnHex(seriesColor(d.head)), fontSize: 10, fontWeight: 600 }),
          ],
        })}
      />
    </figure>
  );
}

function inkOnHex(hex: string): string {
  const n = parseInt(hex.slice(1), 16);
  return inkOn(new Uint8ClampedArray([n >> 16, (n >> 8) & 255, n & 255, 255]), 0);
}
