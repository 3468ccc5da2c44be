// The map: pointer, keys, zoom and scrolling; only tiles in sight are drawn, so a thousand tokens scroll like ten.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { sharpContext } from "../canvas";
import { chosenTheme, isDark, type Scale, systemDark } from "../colors";
import { mapHint } from "../device";
import { type Cell, cellAt, cellByKey, type Frame, reveal } from "./cursor";
import { drawMap, mapLayout, mapSize } from "./heatmap_draw";
import { describeCell, type Matrix, poolMatrix } from "./matrix";
import { Tiles } from "./tiles";
import { fitZoom, type Zoom, zoomBy } from "./zoom";

interface Props {
  m: Matrix;
  scale: Scale;
  label: string;
  pinned: number;
  pinnedKey?: number;
  onPin: (row: number, col: number) => void; // -1, -1: let go
  onKey?: (key: string) => boolean;
  onCursor?: (cell: Cell | null) => void;
}

interface Area {
  width: number;
  height: number;
}

function useArea(box: RefObject<HTMLElement>): Area {
  const [area, setArea] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = box.current!;
    const watch = new ResizeObserver(() => setArea({ width: element.clientWidth, height: element.clientHeight }));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return area;
}

/** The zoom a person chose, else the one that fits; and the map at that zoom. */
function useZoomed(whole: Matrix, area: Area) {
  const [chosen, choose] = useState<Zoom | null>(null);
  const fit = useMemo(() => fitZoom(whole, area.width, area.height), [whole, area]);
  const zoom = chosen ?? fit;
  const m = useMemo(() => (zoom.pool > 1 ? poolMatrix(whole, zoom.pool) : whole), [whole, zoom.pool]);
  const layout = useMemo(() => mapLayout(m), [m]);
  useEffect(() => choose(null), [whole.rows, whole.cols]);
  return { zoom, m, layout, choose };
}

const inside = (m: Matrix, c: Cell | null): Cell | null => (c && c[0] < m.rows && c[1] < m.cols ? c : null);

interface Handles {
  frame: () => Frame;
  zoom: Zoom;
  choose: (zoom: Zoom | null) => void;
  cursor: Cell | null;
  setCursor: (c: Cell | null) => void;
}

/** What pointer, wheel and keys do; `change` is another size of the cells. */
function handlers(
  { frame, zoom, choose, cursor, setCursor }: Handles,
  { pinned, pinnedKey, onPin, onKey, onCursor }: Props,
) {
  const moveTo = (c: Cell | null) => {
    setCursor(c);
    onCursor?.(c && zoom.pool === 1 ? c : null);
  };
  const pin = (c: Cell) => onPin(c[0] * zoom.pool, c[1] * zoom.pool);
  /** What lies under (x, y) of the map's area stays there; by default its middle. */
  const change = (way: 1 | -1, at?: { x: number; y: number }) => {
    const { box, layout } = frame();
    const next = zoomBy(zoom, way);
    const factor = next.size / next.pool / (zoom.size / zoom.pool);
    const { x, y } = at ?? { x: (box.clientWidth - layout.left) / 2, y: (box.clientHeight - layout.top) / 2 };
    const left = (box.scrollLeft + x) * factor - x;
    const top = (box.scrollTop + y) * factor - y;
    choose(next);
    moveTo(null);
    requestAnimationFrame(() => box.scrollTo(left, top));
  };
  const onKeyDown = (e: KeyboardEvent) => {
    const { m } = frame();
    const next = cellByKey(e, m, cursor, pinned);
    if (next) {
      moveTo(next);
      reveal(frame(), next);
    } else if (e.key === "Enter") pin(cursor ?? [Math.max(0, Math.min(m.rows - 1, pinned)), 0]);
    else if (e.key === "Escape") {
      moveTo(null);
      onPin(-1, -1);
    } else if (e.key === "+" || e.key === "-") change(e.key === "+" ? 1 : -1);
    else if (e.key === "0") choose(null);
    else if (!onKey?.(e.key)) return;
    e.preventDefault();
  };
  const onWheel = (e: WheelEvent) => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    const { canvas, layout } = frame();
    const r = canvas.getBoundingClientRect();
    change(e.deltaY < 0 ? 1 : -1, { x: e.clientX - r.left - layout.left, y: e.clientY - r.top - layout.top });
  };
  const onClick = (e: MouseEvent) => {
    const where = cellAt(frame(), e);
    if (!where) return;
    moveTo(where);
    if (pinned === where[0] * zoom.pool && pinnedKey === where[1] * zoom.pool) onPin(-1, -1);
    else pin(where);
  };
  const onMouseMove = (e: MouseEvent) => moveTo(cellAt(frame(), e));
  const onMouseLeave = () => moveTo(null);
  return { change, events: { onKeyDown, onWheel, onClick, onMouseMove, onMouseLeave } };
}

export function HeatMap(props: Props) {
  const { m: whole, scale, label, pinned } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const area = useArea(box);
  const { zoom, m, layout, choose } = useZoomed(whole, area);
  const { size, pool } = zoom;
  const [cursor, setCursor] = useState<Cell | null>(null);
  const [ready, setReady] = useState(false);
  const tiles = useMemo(() => new Tiles(m, scale), [m, scale, isDark()]);
  useEffect(() => setCursor((c) => inside(m, c)), [m]);
  const paint = () => {
    if (!area.width) return;
    const { scrollLeft, scrollTop } = box.current!;
    const pin = pinned >= 0 ? Math.floor(pinned / pool) : -1;
    const look = { tiles, layout, size, left: scrollLeft, top: scrollTop, ...area, cursor, pinned: pin };
    drawMap(sharpContext(canvas.current!, area.width, area.height), look);
    if (!ready) setReady(true);
  };
  useLayoutEffect(paint, [tiles, layout, area, cursor, pinned, size, chosenTheme.value, systemDark.value]);
  const frame = (): Frame => ({ box: box.current!, canvas: canvas.current!, m, layout, size });
  const { change, events } = handlers({ frame, zoom, choose, cursor, setCursor }, props);
  const full = mapSize(m, layout, size);
  const there = inside(m, cursor);
  return (
    <div class="map">
      <div
        class="map-box"
        ref={box}
        tabIndex={0}
        role="application"
        aria-label={label}
        data-ready={ready ? "true" : "false"}
        data-rows={m.rows}
        data-cols={m.cols}
        data-size={size}
        data-pool={m.pool ?? 1}
        data-left={layout.left}
        data-top={layout.top}
        onScroll={paint}
        {...events}
      >
        <canvas ref={canvas} style={{ width: `${area.width}px`, height: `${area.height}px` }} />
        <div style={{ width: `${full.width}px`, height: `${Math.max(0, full.height - area.height)}px` }} />
      </div>
      <div class="under-map">
        <p class="readout" aria-live="polite">
          {there ? describeCell(m, ...there) : mapHint}
        </p>
        <ZoomButtons change={change} fit={() => choose(null)} />
      </div>
    </div>
  );
}

function ZoomButtons({ change, fit }: { change: (way: 1 | -1) => void; fit: () => void }) {
  return (
    <span class="zoom" role="group" aria-label="Size of the cells">
      <button type="button" aria-label="Smaller" onClick={() => change(-1)}>
        −
      </button>
      <button type="button" aria-label="Fit" title="fit" onClick={fit}>
        ⤢
      </button>
      <button type="button" aria-label="Larger" onClick={() => change(1)}>
        +
      </button>
    </span>
  );
}
