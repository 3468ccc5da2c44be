// The attention of one model as a page of its own, for notebooks: the numbers are in it, nothing is asked of a server.
import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { sharpContext } from "./canvas";
import { isDark, seriesColor, systemDark } from "./colors";
import {
  type Focus,
  geometryOf,
  type HeadMap,
  type Labels,
  linesOf,
  mostTokens,
  paint,
  tokenAt,
} from "./explore/lines_draw";
import { useWidth } from "./hooks";
import { HeatMap } from "./map/heatmap";
import { caption, type Matrix, poolMatrix } from "./map/matrix";
import { Tiles } from "./map/tiles";
import { TintedTokens } from "./map/tinted";
import "./style/base.css";
import "./style/explore.css";
import "./style/notebook.css";

interface Site {
  id: string;
  rows: string[];
  columns: string[];
  shape: [number, number, number, number]; // layers, heads, queries, keys
  weights: string; // float32, little endian, in base64
}

function numbers(base64: string): Float32Array {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** The map of one layer and head. */
function mapOf(site: Site, all: Float32Array, layer: number, head: number): Matrix {
  const [, heads, rows, cols] = site.shape;
  const begin = (layer * heads + head) * rows * cols;
  const values = all.subarray(begin, begin + rows * cols);
  return { rows, cols, values, rowLabels: site.rows, colLabels: site.columns };
}

interface Chosen {
  site: Site;
  all: Float32Array;
  layer: number;
  head: number;
  query: number;
}

function MapTab({ site, all, layer, head, query, pin }: Chosen & { pin: (query: number) => void }) {
  const m = useMemo(() => mapOf(site, all, layer, head), [site, layer, head]);
  return (
    <>
      <TintedTokens m={m} row={query} />
      <HeatMap m={m} scale="abs" label={`layer ${layer}, head ${head}`} pinned={query} onPin={pin} />
      <p class="caption">{caption(m)}</p>
    </>
  );
}

function LinesTab({ site, all, layer }: Chosen) {
  const [, heads, rows, cols] = site.shape;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const [over, setOver] = useState<Focus>(null);
  const shown = Math.min(rows, mostTokens);
  const lines = useMemo(() => {
    const maps: HeadMap[] = Array.from({ length: heads }, (_, head) => {
      const m = mapOf(site, all, layer, head);
      return { head, m: { ...m, rows: shown, values: m.values.subarray(0, shown * cols) } };
    });
    return linesOf(maps, 0, 90);
  }, [site, layer]);
  const labels: Labels = { rows: site.rows, keys: site.columns };
  const g = geometryOf(width, heads, 0, shown, labels);
  useEffect(() => {
    if (!canvas.current || !width) return;
    const seen = lines.filter((l) => !over || (over.side === "query" ? l.i : l.j) === over.index);
    paint(sharpContext(canvas.current, width, g.height), { g, lines: seen, labels, top: 1 }, over);
    canvas.current.dataset.lines = String(seen.length);
  }, [lines, width, over?.side, over?.index, systemDark.value]);
  const under = (e: MouseEvent): Focus => {
    const r = canvas.current!.getBoundingClientRect();
    return tokenAt(g, e.clientX - r.left, e.clientY - r.top);
  };
  return (
    <div class="lines" ref={box}>
      <p class="caption">
        Keys that reach 90 % of the weight; point at a token to see it alone.{" "}
        {Array.from({ length: heads }, (_, head) => (
          <>
            <span class="swatch" style={{ background: seriesColor(head) }} /> head {head}{" "}
          </>
        ))}
      </p>
      <canvas
        ref={canvas}
        role="img"
        style={{ width: "100%", height: `${g.height}px` }}
        aria-label={`Lines of layer ${layer}: opacity is the weight, colour the head`}
        onMouseMove={(e) => setOver(under(e))}
        onMouseLeave={() => setOver(null)}
      />
    </div>
  );
}

function Thumb({ m }: { m: Matrix }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const small = useMemo(() => poolMatrix(m, Math.max(1, Math.ceil(Math.max(m.rows, m.cols) / 64))), [m]);
  useEffect(() => {
    const c = canvas.current!.getContext("2d")!;
    new Tiles(small, "abs").draw(c, 0, 0, 1, [0, small.rows], [0, small.cols]);
  }, [small, systemDark.value]);
  return <canvas ref={canvas} width={small.cols} height={small.rows} />;
}

function HeadsTab({ site, all, open }: Chosen & { open: (layer: number, head: number) => void }) {
  const [layers, heads] = site.shape;
  return (
    <div class="thumbs large">
      {Array.from({ length: layers }, (_, layer) => (
        <div class="thumb-row">
          <span class="thumb-layer">layer {layer}</span>
          <div class="thumb-cells">
            {Array.from({ length: heads }, (_, head) => (
              <button
                type="button"
                class="thumb"
                aria-label={`Layer ${layer}, head ${head}`}
                onClick={() => open(layer, head)}
              >
                <Thumb m={mapOf(site, all, layer, head)} />
                <span>head {head}</span>
              </button>
            ))}
          </div>
        </div>
      ))}
    </div>
  );
}

const tabs = ["map", "lines", "heads"] as const;

function Choice(props: { name: string; count: number; value: number; set: (n: number) => void }) {
  if (props.count < 2) return null;
  return (
    <label>
      {props.name}{" "}
      <select id={props.name} value={props.value} onChange={(e) => props.set(Number(e.currentTarget.value))}>
        {Array.from({ length: props.count }, (_, i) => (
          <option value={i}>{i}</option>
        ))}
      </select>
    </label>
  );
}

function View({ title, sites }: { title: string; sites: Site[] }) {
  const [tab, setTab] = useState<(typeof tabs)[number]>("map");
  const [which, setWhich] = useState(0);
  const [layer, setLayer] = useState(0);
  const [head, setHead] = useState(0);
  const [query, pin] = useState(-1);
  const site = sites[which];
  const all = useMemo(() => numbers(site.weights), [site]);
  const chosen: Chosen = { site, all, layer, head, query };
  const choose = (n: number) => {
    setWhich(n);
    setLayer(0);
    setHead(0);
    pin(-1);
  };
  const open = (l: number, h: number) => {
    setLayer(l);
    setHead(h);
    setTab("map");
  };
  return (
    <main class="notebook" data-ready="true">
      <h1>{title}</h1>
      <div class="controls">
        {tabs.map((name) => (
          <button type="button" id={`tab-${name}`} aria-pressed={tab === name} onClick={() => setTab(name)}>
            {name}
          </button>
        ))}
        {sites.length > 1 && (
          <select id="site" value={which} onChange={(e) => choose(Number(e.currentTarget.value))}>
            {sites.map((s, i) => (
              <option value={i}>{s.id}</option>
            ))}
          </select>
        )}
        {tab !== "heads" && <Choice name="layer" count={site.shape[0]} value={layer} set={setLayer} />}
        {tab === "map" && <Choice name="head" count={site.shape[1]} value={head} set={setHead} />}
      </div>
      {tab === "map" && <MapTab {...chosen} pin={pin} />}
      {tab === "lines" && <LinesTab {...chosen} />}
      {tab === "heads" && <HeadsTab {...chosen} open={open} />}
    </main>
  );
}

const dark = () => document.documentElement.setAttribute("data-theme", isDark() ? "dark" : "light");
dark();
systemDark.subscribe(dark);
const data = JSON.parse(document.getElementById("data")!.textContent!) as { title: string; sites: Site[] };
render(<View {...data} />, document.getElementById("view")!);
