// All heads at once: thumbnails of every layer x head, and figures of each head as dots.
import * as Plot from "@observablehq/plot";
import { useEffect, useRef } from "preact/hooks";
import { type Figures, getJson, query, type Site, type Trace } from "../api";
import { Chart } from "../chart";
import { inkOn, seriesColor } from "../colors";
import { spread } from "../map/matrix";
import { csv } from "../save/csv";
import { exportTrace } from "../save/files";
import { figuresSvg } from "../save/svg";
import { siteName, useAbout } from "../trace";
import { Thumbnails } from "./thumbnails";

const kinds: [keyof Figures, string][] = [
  ["entropy", "entropy, as a share of an even spread"],
  ["distance", "mean distance looked, in tokens"],
  ["largest", "mean largest weight of a row"],
  ["self", "mean weight on the own position"],
  ["first", "mean weight on the first key"],
];

interface Dot {
  layer: number;
  head: number;
  value: number;
}

const dotsOf = (figures: Figures, kind: keyof Figures): Dot[] =>
  figures[kind].flatMap((heads, layer) => heads.map((value, head) => ({ layer, head, value })));

const figuresCsv = (figures: Figures): string =>
  csv([
    ["layer", "head", ...kinds.map(([kind]) => kind)],
    ...dotsOf(figures, "entropy").map(({ layer, head }) => [
      layer,
      head,
      ...kinds.map(([kind]) => figures[kind][layer][head]),
    ]),
  ]);

function sentence(figures: Figures): string {
  const heads = dotsOf(figures, "entropy");
  const sharp = heads.reduce((a, b) => (b.value < a.value ? b : a));
  const soft = heads.reduce((a, b) => (b.value > a.value ? b : a));
  const name = (d: Dot) => `layer ${d.layer} head ${d.head} (entropy ${spread(d.value)})`;
  if (heads.length === 1) return `The only head is ${name(sharp)}.`;
  if (spread(sharp.value) === spread(soft.value))
    return `All heads look about as widely: entropy ${spread(soft.value)}.`;
  return `The sharpest head is ${name(sharp)}, the most even one ${name(soft)}.`;
}

export function HeadsView({ t, site }: { t: Trace; site: Site }) {
  const figures = useAbout(t, `figures?${query({ site: site.id })}`, getJson<Figures>);
  const box = useRef<HTMLDivElement>(null);
  const title = `${t.model}: ${siteName(site)}, every head`;
  useEffect(() => {
    if (!figures) return;
    exportTrace(t, {
      title,
      caption: sentence(figures),
      svg: (bare) => figuresSvg(title, Array.from(box.current!.querySelectorAll<SVGSVGElement>("figure svg")), bare),
      csv: () => figuresCsv(figures),
    });
  }, [figures]);
  return (
    <div class="heads" ref={box}>
      <Thumbnails t={t} site={site} large />
      {!figures ? (
        <p>Counting…</p>
      ) : (
        <>
          <p class="caption">{sentence(figures)} Each dot below is a head.</p>
          <div class="figures">
            {kinds.map(([kind, name]) => (
              <Dots kind={kind} name={name} figures={figures} />
            ))}
          </div>
          <Numbers figures={figures} />
        </>
      )}
    </div>
  );
}

function Numbers({ figures }: { figures: Figures }) {
  return (
    <details>
      <summary>The numbers</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>layer</th>
              <th>head</th>
              {kinds.map(([, name]) => (
                <th>{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {dotsOf(figures, "entropy").map(({ layer, head }) => (
              <tr>
                <td>{layer}</td>
                <td>{head}</td>
                {kinds.map(([kind]) => (
                  <td class="n">{figures[kind][layer][head].toFixed(4)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function dotPlot(dots: Dot[], layers: number, heads: number, share: boolean): Plot.PlotOptions {
  // Heads of a layer are drawn one below the other, so that equal values do not hide each other.
  const y = (d: Dot) => d.layer + ((d.head + 0.5) / heads - 0.5) * (heads > 1 ? 0.8 : 0);
  const fill = (d: Dot) => seriesColor(d.head);
  const title = (d: Dot) => `layer ${d.layer}, head ${d.head}: ${d.value.toFixed(4)}`;
  const text = (d: Dot) => String(d.head);
  const ink = (d: Dot) => inkOnHex(seriesColor(d.head));
  return {
    height: 34 + layers * Math.max(26, 15 * heads),
    marginLeft: 56,
    marginTop: 6,
    marginRight: 16,
    x: { label: null, grid: true, ...(share ? { domain: [0, 1] } : { nice: true, zero: true }) },
    y: {
      label: null,
      domain: [-0.5, layers - 0.5],
      reverse: true,
      ticks: Array.from({ length: layers }, (_, i) => i),
      tickFormat: (d: number) => `layer ${d}`,
    },
    marks: [
      Plot.dot(dots, { x: "value", y, r: 7, fill, title }),
      Plot.text(dots, { x: "value", y, text, fill: ink, fontSize: 10, fontWeight: 600 }),
    ],
  };
}

function Dots({ kind, name, figures }: { kind: keyof Figures; name: string; figures: Figures }) {
  const layers = figures[kind].length;
  const heads = figures[kind].reduce((a, l) => Math.max(a, l.length), 1);
  return (
    <figure>
      <figcaption>{name}</figcaption>
      <Chart
        label={`${name} of every head`}
        deps={[figures, kind]}
        options={() => dotPlot(dotsOf(figures, kind), layers, heads, kind !== "distance")}
      />
    </figure>
  );
}

function inkOnHex(hex: string): string {
  const n = Number.parseInt(hex.slice(1), 16);
  return inkOn(new Uint8ClampedArray([n >> 16, (n >> 8) & 255, n & 255, 255]), 0);
}
