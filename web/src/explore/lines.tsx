// Token-to-token lines: queries left, keys right, one colour per head; opacity is the weight, whatever else is shown.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Site, Trace } from "../api";
import { sharpContext } from "../canvas";
import { chosenTheme, isDark, seriesColor, systemDark } from "../colors";
import { useAnswer, useWidth } from "../hooks";
import { cell } from "../map/matrix";
import { shown } from "../map/tokens";
import { csv, shortest } from "../save/csv";
import { exporting } from "../save/files";
import { state, update } from "../state";
import { cannot, chosenHead, fetchMap, siteLabels, siteName } from "../trace";
import {
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

function toggle(hidden: Set<number>, head: number): void {
  const next = new Set(hidden);
  if (!next.delete(head)) next.add(head);
  update({ hiddenHeads: [...next].sort((a, b) => a - b).join(",") });
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

export function LinesView({ t, site }: { t: Trace; site: Site }) {
  const { share, hiddenHeads } = state.value;
  const { layer } = chosenHead(site);
  const [maps, setMaps] = useState<HeadMap[]>([]);
  const [first, setFirst] = useState(0);
  const hidden = new Set(hiddenHeads.split(",").filter(Boolean).map(Number));
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
  return (
    <>
      <div class="controls">
        {site.heads > 1 && <HeadSwitches heads={site.heads} hidden={hidden} />}
        <label>
          keys reaching {share} % of the weight{" "}
          <input
            type="range"
            aria-label="Share of the weight"
            min={10}
            max={100}
            step={5}
            value={share}
            onInput={(e) => update({ share: Number(e.currentTarget.value) })}
          />
        </label>
        {site.queries > mostTokens && (
          <label>
            queries {first}–{until - 1} of {site.queries}{" "}
            <input
              type="range"
              aria-label="First query in sight"
              min={0}
              max={site.queries - mostTokens}
              value={first}
              onInput={(e) => setFirst(Number(e.currentTarget.value))}
            />
          </label>
        )}
      </div>
      {maps.length > 0 && <Lines t={t} site={site} first={first} maps={maps.filter((x) => !hidden.has(x.head))} />}
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
}

function Lines({ t, site, first, maps }: Props) {
  const { query, share, model } = state.value;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [over, setOver] = useState<Focus>(null);
  const focus: Focus = over ?? (query >= 0 ? { side: "query", index: query } : null);
  const heads = maps.map((x) => x.head).join();
  const all = useMemo(() => linesOf(maps, first, share / 100), [heads, maps[0]?.m, first, share]);
  const lines = all.filter((l) => !focus || (focus.side === "query" ? l.i : l.j) === focus.index);
  const labels = siteLabels(t, site);
  const g = geometryOf(width, site.heads, first, maps[0]?.m.rows ?? 0, site.keys);
  const title = `${model}: ${siteName(site)}, layer ${chosenHead(site).layer}, lines`;
  useEffect(() => {
    const target = canvas.current;
    if (!target || !width) return;
    paint(sharpContext(target, width, g.height), g, lines, focus, labels);
    target.dataset.lines = String(lines.length);
    target.dataset.ready = "true";
    exporting.value = {
      title,
      caption: `${lines.length} lines: for every query the fewest keys that reach ${share} % of its weight.`,
      svg: () => linesSvg(title, { ...g, width: Math.max(600, width) }, lines, labels),
      csv: () => linesCsv(lines, labels),
    };
  }, [all, width, focus?.side, focus?.index, isDark(), chosenTheme.value, systemDark.value]);
  const tokenUnder = (e: MouseEvent): Focus => {
    const r = canvas.current!.getBoundingClientRect();
    return tokenAt(g, e.clientX - r.left, e.clientY - r.top);
  };
  const click = (e: MouseEvent) => {
    const f = tokenUnder(e);
    if (f?.side === "query") update({ query: f.index === query ? -1 : f.index });
  };
  const stated = `${lines.length} lines from ${site.queries} queries to ${site.keys} keys`;
  return (
    <div class="lines" ref={box}>
      <p class="caption">
        {maps.length === 0
          ? "Choose at least one head."
          : `${lines.length} lines; the stronger a line, the larger its weight. Point at a token to see it alone.`}
      </p>
      {focus && maps.length > 0 && <FocusTable maps={maps} focus={focus} first={first} labels={labels} />}
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        style={{ width: "100%", height: `${g.height}px` }}
        aria-label={`${title}. ${stated}; opacity is the weight, colour the head`}
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

/** The largest weights of the token in focus, with the tokens at their other ends. */
function weightsOf({ m }: HeadMap, { focus, first, labels }: FocusProps): [string, number][] {
  if (focus.side === "query") {
    const i = focus.index - first;
    if (i < 0 || i >= m.rows) return [];
    const keys = strongest(m, i, 0.999).slice(0, 6);
    return keys.map((j) => [labels.keys[j], cell(m, i, j)]);
  }
  const column = Array.from({ length: m.rows }, (_, i): [string, number] => [
    labels.rows[first + i],
    cell(m, i, focus.index),
  ]);
  const seen = column.filter(([, v]) => v > 0);
  return seen.sort((a, b) => b[1] - a[1]).slice(0, 6);
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
