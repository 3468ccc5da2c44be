// The map: pointer, keys, zoom and scrolling; only tiles in sight are drawn, so a thousand tokens scroll like ten.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Scale, at as shadeAt, chosenTheme, colorTable, inkOn, isDark, systemDark } from "./colors";
import { Tiles, drawMap, mapLayout, mapSize } from "./heatmap_draw";
import { type Matrix, cell, describeCell, poolMatrix, rowMaximum, shown } from "./matrix";

const sizes = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48];
const pools = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

interface Zoom {
  pool: number;
  size: number;
}

/** The largest cells with which the whole map fits; from afar, cells are pooled. */
export function fitZoom(m: Matrix, width: number, height: number): Zoom {
  const layout = mapLayout(m);
  const room = Math.min((width - layout.left - layout.right) / m.cols, (height - layout.top - 4) / m.rows);
  if (room >= 1) return { pool: 1, size: Math.min(48, Math.max(room >= 8 ? 8 : 1, Math.floor(room))) };
  return { pool: pools.find((k) => k * room >= 1) ?? 32, size: 1 };
}

function zoomBy(z: Zoom, way: 1 | -1): Zoom {
  if (way > 0) {
    if (z.pool > 1) return { pool: [...pools].reverse().find((k) => k < z.pool) ?? 1, size: 1 };
    return { pool: 1, size: sizes.find((s) => s > z.size) ?? z.size };
  }
  const smaller = [...sizes].reverse().find((s) => s < z.size);
  if (smaller) return { pool: z.pool, size: smaller };
  return { pool: pools.find((k) => k > z.pool) ?? z.pool, size: 1 };
}

interface Props {
  m: Matrix;
  scale: Scale;
  label: string;
  pinned: number;
  onPin: (row: number) => void;
  onKey?: (key: string) => boolean;
  onCursor?: (cell: [number, number] | null) => void;
}

export function HeatMap({ m: whole, scale, label, pinned, onPin, onKey, onCursor }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [area, setArea] = useState({ width: 0, height: 0 });
  const [cursor, setCursorState] = useState<[number, number] | null>(null);
  const [chosen, setChosen] = useState<Zoom | null>(null);
  const [ready, setReady] = useState(false);
  const fit = useMemo(() => fitZoom(whole, area.width, area.height), [whole, area]);
  const zoom = chosen ?? fit;
  const { size } = zoom;
  const m = useMemo(() => (zoom.pool > 1 ? poolMatrix(whole, zoom.pool) : whole), [whole, zoom.pool]);
  const layout = useMemo(() => mapLayout(m), [m]);
  const tiles = useMemo(() => new Tiles(m, scale), [m, scale, isDark()]);
  const setCursor = (c: [number, number] | null) => {
    setCursorState(c);
    onCursor?.(c && zoom.pool === 1 ? c : null);
  };
  useEffect(() => setChosen(null), [whole.rows, whole.cols]);
  useEffect(() => setCursorState((c) => (c && c[0] < m.rows && c[1] < m.cols ? c : null)), [m]);

  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => {
      if (box.current) setArea({ width: box.current.clientWidth, height: box.current.clientHeight });
    });
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);

  const paint = () => {
    const target = canvas.current, from = box.current;
    if (!target || !from || !area.width) return;
    const ratio = devicePixelRatio || 1;
    const width = Math.round(area.width * ratio), height = Math.round(area.height * ratio);
    if (target.width !== width || target.height !== height) {
      target.width = width;
      target.height = height;
    }
    const c = target.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const pin = pinned >= 0 ? Math.floor(pinned / zoom.pool) : -1;
    drawMap(c, { tiles, layout, size, left: from.scrollLeft, top: from.scrollTop, ...area, cursor, pinned: pin });
    if (!ready) setReady(true);
  };
  useLayoutEffect(paint, [tiles, layout, area, cursor, pinned, size, chosenTheme.value, systemDark.value]);

  const place = (e: { clientX: number; clientY: number }): [number, number] | null => {
    const r = canvas.current!.getBoundingClientRect();
    const x = e.clientX - r.left - layout.left, y = e.clientY - r.top - layout.top;
    const j = Math.floor((x + box.current!.scrollLeft) / size), i = Math.floor((y + box.current!.scrollTop) / size);
    return x >= 0 && y >= 0 && i < m.rows && j < m.cols ? [i, j] : null;
  };
  const reveal = (i: number, j: number) => {
    const b = box.current!;
    const x = j * size, y = i * size;
    if (x < b.scrollLeft) b.scrollLeft = x;
    if (x + size > b.scrollLeft + area.width - layout.left) b.scrollLeft = x + size - area.width + layout.left;
    if (y < b.scrollTop) b.scrollTop = y;
    if (y + size > b.scrollTop + area.height - layout.top) b.scrollTop = y + size - area.height + layout.top;
  };
  /** Another size of the cells; what lies under (x, y) of the map's area stays there. */
  const change = (way: 1 | -1, x = (area.width - layout.left) / 2, y = (area.height - layout.top) / 2) => {
    const next = zoomBy(zoom, way), b = box.current!;
    const factor = next.size / next.pool / (zoom.size / zoom.pool);
    const left = (b.scrollLeft + x) * factor - x, top = (b.scrollTop + y) * factor - y;
    setChosen(next);
    setCursor(null);
    requestAnimationFrame(() => b.scrollTo(left, top));
  };
  const key = (e: KeyboardEvent) => {
    const [i, j] = cursor ?? [Math.max(0, Math.min(m.rows - 1, pinned)), 0];
    const step = e.shiftKey ? 10 : 1;
    const moves: Record<string, [number, number]> = {
      ArrowUp: [i - step, j], ArrowDown: [i + step, j], ArrowLeft: [i, j - step], ArrowRight: [i, j + step],
      Home: [i, 0], End: [i, m.cols - 1], m: [i, rowMaximum(m, i)],
    };
    const move = moves[e.key];
    if (move) {
      // The first key puts the cursor down; the next ones move it.
      const to = cursor || e.key === "m" || e.key === "Home" || e.key === "End" ? move : [i, j];
      const next: [number, number] = [Math.max(0, Math.min(m.rows - 1, to[0])), Math.max(0, Math.min(m.cols - 1, to[1]))];
      setCursor(next);
      reveal(...next);
    } else if (e.key === "Enter") onPin(pinned === i * zoom.pool ? -1 : i * zoom.pool);
    else if (e.key === "Escape") {
      setCursor(null);
      onPin(-1);
    } else if (e.key === "+" || e.key === "-") change(e.key === "+" ? 1 : -1);
    else if (e.key === "0") setChosen(null);
    else if (!onKey?.(e.key)) return;
    e.preventDefault();
  };
  const full = mapSize(m, layout, size);
  return (
    <div class="map">
      <div
        class="map-box" ref={box} tabIndex={0} role="application" aria-label={label}
        data-ready={ready ? "true" : "false"} data-rows={m.rows} data-cols={m.cols} data-size={size} data-pool={m.pool ?? 1}
        data-left={layout.left} data-top={layout.top}
        onScroll={paint} onKeyDown={key}
        onMouseMove={(e) => setCursor(place(e))} onMouseLeave={() => setCursor(null)}
        onWheel={(e) => {
          if (!e.ctrlKey) return;
          e.preventDefault();
          const r = canvas.current!.getBoundingClientRect();
          change(e.deltaY < 0 ? 1 : -1, e.clientX - r.left - layout.left, e.clientY - r.top - layout.top);
        }}
        onClick={(e) => {
          const where = place(e);
          if (!where) return;
          setCursor(where);
          onPin(pinned === where[0] * zoom.pool ? -1 : where[0] * zoom.pool);
        }}
      >
        <canvas ref={canvas} style={{ width: `${area.width}px`, height: `${area.height}px` }} />
        <div style={{ width: `${full.width}px`, height: `${Math.max(0, full.height - area.height)}px` }} />
      </div>
      <div class="under-map">
        <p class="readout" aria-live="polite">
          {cursor && cursor[0] < m.rows && cursor[1] < m.cols ? describeCell(m, cursor[0], cursor[1]) : "Point at a cell, or focus the map and use the arrow keys."}
        </p>
        <span class="zoom" role="group" aria-label="Size of the cells">
          <button type="button" aria-label="Smaller" onClick={() => change(-1)}>−</button>
          <button type="button" aria-label="Fit" title="fit" onClick={() => setChosen(null)}>⤢</button>
          <button type="button" aria-label="Larger" onClick={() => change(1)}>+</button>
        </span>
      </div>
    </div>
  );
}

const mostTinted = 300;

/** The running text above a map, tinted by one row's weights. */
export function TintedTokens({ m, row }: { m: Matrix; row: number }) {
  if (row < 0 || row >= m.rows || m.pool) return null;
  const table = colorTable("abs");
  // Of a long text, the part around the largest weight.
  const from = Math.max(0, Math.min(m.cols - mostTinted, rowMaximum(m, row) - mostTinted / 2));
  const to = Math.min(m.cols, from + mostTinted);
  return (
    <p class="tinted" aria-label={`Keys tinted by the weights of query ${row}`}>
      <b>{shown(m.rowLabels[row])}</b> looks at {from > 0 && "… "}
      {m.colLabels.slice(from, to).map((token, k) => {
        const v = cell(m, row, from + k), shade = v || 0, i = shadeAt(shade);
        return (
          <span style={{ background: `rgb(${table[i]},${table[i + 1]},${table[i + 2]})`, color: inkOn(table, shade) }} title={Number.isNaN(v) ? "masked" : v.toFixed(4)}>
            {shown(token)}
          </span>
        );
      })}
      {to < m.cols && " …"}
    </p>
  );
}
