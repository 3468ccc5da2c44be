// Token-to-token lines: queries left, keys right, one colour per head; by default one head and the strongest keys.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Site, Trace } from "../api";
import { sharpContext } from "../canvas";
import { chosenTheme, isDark, seriesColor, systemDark } from "../colors";
import { narrow, touch } from "../device";
import { useAnswer, useWidth } from "../hooks";
import { cell, topWeight } from "../map/matrix";
import { shown } from "../map/tokens";
import { csv, shortest } from "../save/csv";
import { exportTrace } from "../save/files";
import { Select } from "../select";
import { state, update } from "../state";
import { cannot, chosenHead, fetchMap, isMean, siteLabels, siteName } from "../trace";
import {
  type Drawn,
  type Focus,
  type Geometry,
  geometryOf,
  type HeadMap,
  type Labels,
  type Line,
  linesOf,
  linesSvg,
  mostTokens,
  paint,
  strongest,
  tokenAt,
} from "./lines_draw";

/** Heads without lines: those the state names, else all but the chosen one. */
function hiddenHeads(site: Site): Set<number> {
  const named = state.value.hiddenHeads;
  if (named === "none") return new Set();
  if (named) return new Set(named.split(",").map(Number));
  const { head } = chosenHead(site);
  return new Set(Array.from({ length: site.heads }, (_, h) => h).filter((h) => h !== head));
}

function toggle(hidden: Set<number>, head: number): void {
  const next = new Set(hidden);
  if (!next.delete(head)) next.add(head);
  update({ hiddenHeads: [...next].sort((a, b) => a - b).join(",") || "none" });
}

function HeadSwitches({ heads, hidden }: { heads: number; hidden: Set<number> }) {
  return (
    <>
      {Array.from({ length: heads }, (_, head) => (
        <label class="head-switch">
          <input type="checkbox" checked={!hidden.has(head)} onChange={() => toggle(hidden, head)} />
          <span class="swatch" style={{ background: seriesColor(head) }} /> head {head}
        </label>
      ))}
    </>
  );
}

/** Which keys get a line, by what the state's share says. */
const limits: [number, string, string][] = [
  [-1, "the strongest key", "the strongest key"],
  [-3, "the 3 strongest keys", "the 3 strongest keys"],
  [-10, "the 10 strongest keys", "the 10 strongest keys"],
  [50, "keys reaching 50%", "the fewest keys that reach 50% of the weight"],
  [80, "keys reaching 80%", "the fewest keys that reach 80% of the weight"],
  [95, "keys reaching 95%", "the fewest keys that reach 95% of the weight"],
  [100, "every key", "every key"],
];
const meaning = (share: number): string =>
  limits.find(([value]) => value === share)?.[2] ?? `the fewest keys that reach ${share}% of the weight`;

function LimitChoice() {
  const { share } = state.value;
  const known = limits.some(([value]) => value === share);
  const own: [string, string][] = known ? [] : [[String(share), meaning(share)]];
  return (
    <label>
      a line to{" "}
      <Select
        id="share"
        value={String(share)}
        options={[...limits.map(([value, text]): [string, string] => [String(value), text]), ...own]}
        onChange={(v) => update({ share: Number(v) })}
      />
    </label>
  );
}

export function LinesView({ t, site }: { t: Trace; site: Site }) {
  const { layer } = chosenHead(site);
  const [maps, setMaps] = useState<HeadMap[]>([]);
  const last = Math.max(0, site.queries - mostTokens);
  const [first, setFirst] = useState(() => Math.max(0, Math.min(last, state.value.query - mostTokens / 4)));
  const hidden = hiddenHeads(site);
  const until = Math.min(site.queries, first + mostTokens);
  const fetchHead = async (head: number): Promise<HeadMap> => ({
    head,
    m: await fetchMap(t, { site, layer, head, rows: [first, until] }),
  });
  useAnswer(
    () => Promise.all(Array.from({ length: site.heads }, (_, head) => fetchHead(head))),
    [t.id, site.id, layer, first],
    setMaps,
    cannot,
  );
  // Of all heads, so that a line looks the same whichever others are shown.
  const largest = useMemo(() => maps.reduce((a, x) => Math.max(a, topWeight(x.m)), 0), [maps]);
  const shownMaps = maps.filter((x) => !hidden.has(x.head));
  return (
    <>
      <div class="controls">
        {site.heads > 1 && <HeadSwitches heads={site.heads} hidden={hidden} />}
        <LimitChoice />
        {site.queries > mostTokens && (
          <label>
            queries {first} to {until - 1} of {site.queries}{" "}
            <input
              type="range"
              aria-label="First query in sight"
              min={0}
              max={last}
              value={first}
              onInput={(e) => setFirst(Number(e.currentTarget.value))}
            />
          </label>
        )}
      </div>
      {maps.length > 0 && <Lines t={t} site={site} first={first} maps={shownMaps} largest={largest} />}
    </>
  );
}

const linesCsv = (lines: Line[], labels: Labels): string =>
  csv([
    ["head", "query", "query token", "key", "key token", "weight"],
    ...lines.map((l) => [l.head, l.i, labels.rows[l.i], l.j, labels.keys[l.j], shortest(l.weight)]),
  ]);

/** Up and down arrows move the pinned query within the window, Escape lets it go. */
function moveQuery(e: KeyboardEvent, { first, rows }: Geometry): void {
  const { query } = state.value;
  if (e.key === "ArrowDown") update({ query: Math.min(first + rows - 1, Math.max(first - 1, query) + 1) });
  else if (e.key === "ArrowUp") update({ query: Math.max(first, query - 1) });
  else if (e.key === "Escape") update({ query: -1 });
  else return;
  e.preventDefault();
}

interface Props {
  t: Trace;
  site: Site;
  first: number;
  maps: HeadMap[];
  largest: number; // weight of all heads, but for rows that see few keys
}

function sentence(lines: Line[], rows: number, heads: number): string {
  const count = `${lines.length} ${lines.length === 1 ? "line" : "lines"}`;
  const held = lines.reduce((a, l) => a + l.weight, 0) / Math.max(1, rows * heads);
  return `${count}: from every query to ${meaning(state.value.share)}, ${(100 * held).toFixed(0)}% of all weight.`;
}

function Lines({ t, site, first, maps, largest }: Props) {
  const { query, share, scale } = state.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [over, setOver] = useState<Focus>(null);
  const inSight = query >= first && query < first + (maps[0]?.m.rows ?? 0);
  const focus: Focus = over ?? (inSight ? { side: "query", index: query } : null);
  const heads = maps.map((x) => x.head).join();
  const all = useMemo(() => linesOf(maps, first, share), [heads, maps[0]?.m, first, share]);
  const lines = all.filter((l) => !focus || (focus.side === "query" ? l.i : l.j) === focus.index);
  const labels = siteLabels(t, site);
  const g = geometryOf(width, site.heads, first, maps[0]?.m.rows ?? 0, labels);
  const top = scale === "abs" || !largest ? 1 : largest;
  const drawn: Drawn = { g, lines, labels, top };
  const layer = isMean(site) ? "" : `, layer ${chosenHead(site).layer}`;
  const title = `${t.model}: ${siteName(site)}${layer}, lines`;
  const text = sentence(all, g.rows, maps.length);
  useEffect(() => {
    const target = canvas.current;
    if (!target || !width) return;
    paint(sharpContext(target, width, g.height), drawn, focus);
    target.dataset.lines = String(lines.length);
    target.dataset.ready = "true";
    exportTrace(t, {
      title,
      caption: text,
      svg: (bare) => linesSvg(bare ? "" : title, { ...drawn, g: { ...g, width: Math.max(600, width) } }),
      csv: () => linesCsv(lines, labels),
    });
  }, [all, width, top, focus?.side, focus?.index, isDark(), chosenTheme.value, systemDark.value]);
  const tokenUnder = (e: MouseEvent): Focus => {
    const r = canvas.current!.getBoundingClientRect();
    return tokenAt(g, e.clientX - r.left, e.clientY - r.top);
  };
  const click = (e: MouseEvent) => {
    const f = tokenUnder(e);
    if (f?.side === "query") update({ query: f.index === query ? -1 : f.index });
  };
  const hint = maps.length
    ? `${touch ? "Touch" : "Point at"} a token to see its weights.`
    : "Choose at least one head.";
  const full = top === 1 ? "1" : `${Number(top.toPrecision(3))} or more`;
  return (
    <div class="lines" ref={box}>
      <p class="caption">
        {text} A line is as strong as its weight; a full one has {full}.
      </p>
      {/* As high with a token in focus as without: the diagram below never moves. */}
      <div class="focus-weights" style={{ height: `${1.7 * (1 + Math.min(4, Math.max(1, maps.length)))}em` }}>
        {focus && maps.length ? (
          <FocusTable maps={maps} focus={focus} first={first} labels={labels} />
        ) : (
          <p class="caption">{hint}</p>
        )}
      </div>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        style={{ width: "100%", height: `${g.height}px` }}
        aria-label={`${title}. ${text}`}
        onMouseMove={(e) => setOver(tokenUnder(e))}
        onMouseLeave={() => setOver(null)}
        onClick={click}
        onKeyDown={(e) => moveQuery(e, g)}
      />
    </div>
  );
}

interface FocusProps {
  maps: HeadMap[];
  focus: NonNullable<Focus>;
  first: number;
  labels: Labels;
}

const most = narrow ? 3 : 6;

/** The largest weights of the token in focus, with the tokens at their other ends. */
function weightsOf({ m }: HeadMap, { focus, first, labels }: FocusProps): [string, number][] {
  if (focus.side === "query") {
    const i = focus.index - first;
    if (i < 0 || i >= m.rows) return [];
    return strongest(m, i, -most).map((j) => [labels.keys[j], cell(m, i, j)]);
  }
  const column = Array.from({ length: m.rows }, (_, i): [string, number] => [
    labels.rows[first + i],
    cell(m, i, focus.index),
  ]);
  const seen = column.filter(([, v]) => v > 0);
  return seen.sort((a, b) => b[1] - a[1]).slice(0, most);
}

/** Weights of the token in focus, a line per head. */
function FocusTable(props: FocusProps) {
  const { maps, focus, labels } = props;
  const [token, looks] = focus.side === "query" ? [labels.rows, "looks at"] : [labels.keys, "is looked at by"];
  return (
    <table class="bars" aria-live="polite">
      <caption>
        “{shown(token[focus.index])}” ({focus.index}) {looks}
      </caption>
      <tbody>
        {maps.map((x) => (
          <tr>
            <th>
              <span class="swatch" style={{ background: seriesColor(x.head) }} /> head {x.head}
            </th>
            <td>
              {weightsOf(x, props).map(([other, v]) => (
                <span>
                  {shown(other)} <b>{v.toFixed(4)}</b>
                </span>
              ))}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
