// The map on a canvas: only the cells in sight are drawn, so a thousand tokens scroll as smoothly as ten.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Scale, chosenTheme, colorTable, isDark, systemDark } from "./colors";
import { type Matrix, cell, describeCell, rowMaximum, shades, shorten, shown } from "./matrix";

const font = "12px ui-monospace, monospace";
const labelSpace = 104;
const topSpace = 84;

/** Largest whole cell that lets the map fit, within reason. */
export function cellSize(m: Matrix, width: number, height: number): number {
  const fit = Math.floor(Math.min((width - labelSpace) / m.cols, (height - topSpace) / m.rows));
  return Math.max(4, Math.min(48, fit));
}

interface Look {
  m: Matrix;
  scale: Scale;
  size: number; // pixels a cell
  left: number; // first pixel in sight
  top: number;
  width: number; // of the canvas
  height: number;
  cursor: [number, number] | null;
  pinned: number;
}

function hatch(c: CanvasRenderingContext2D, x: number, y: number, s: number): void {
  c.save();
  c.beginPath();
  c.rect(x, y, s, s);
  c.clip();
  c.strokeStyle = isDark() ? "#4a4f58" : "#c9ced6";
  c.lineWidth = 1;
  c.beginPath();
  for (let d = -s; d < s; d += Math.max(4, Math.min(7, s / 2))) {
    c.moveTo(x + d, y + s);
    c.lineTo(x + d + s, y);
  }
  c.stroke();
  c.restore();
}

function drawCells(c: CanvasRenderingContext2D, look: Look, rows: [number, number], cols: [number, number]): void {
  const { m, size } = look;
  const table = colorTable(look.scale);
  const shade = shades(m, look.scale);
  for (let i = rows[0]; i < rows[1]; i++) {
    for (let j = cols[0]; j < cols[1]; j++) {
      const x = labelSpace + j * size - look.left, y = topSpace + i * size - look.top;
      const s = shade[i * m.cols + j];
      if (Number.isNaN(s)) {
        hatch(c, x, y, size);
        continue;
      }
      const k = Math.max(0, Math.min(255, Math.round(s * 255))) * 4;
      c.fillStyle = `rgb(${table[k]},${table[k + 1]},${table[k + 2]})`;
      c.fillRect(x, y, size, size);
    }
  }
  if (size >= 8) {
    c.strokeStyle = isDark() ? "#2b2f36" : "#e3e7ec";
    c.lineWidth = 1;
    c.strokeRect(labelSpace + cols[0] * size - look.left + 0.5, topSpace + rows[0] * size - look.top + 0.5, (cols[1] - cols[0]) * size, (rows[1] - rows[0]) * size);
  }
}

function drawLabels(c: CanvasRenderingContext2D, look: Look, rows: [number, number], cols: [number, number]): void {
  const { m, size } = look;
  const every = size >= 12 ? 1 : size >= 6 ? 2 : 5;
  const ink = isDark() ? "#e6e8ec" : "#1b1f24";
  const strong = isDark() ? "#ffb454" : "#b1450b";
  const background = isDark() ? "#14161a" : "#ffffff";
  c.font = font;
  c.textBaseline = "middle";
  c.fillStyle = background;
  c.fillRect(0, topSpace, labelSpace, look.height);
  c.fillRect(0, 0, look.width, topSpace);
  for (let i = rows[0]; i < rows[1]; i++) {
    const here = look.cursor?.[0] === i || look.pinned === i;
    if (i % every && !here) continue;
    c.fillStyle = here ? strong : ink;
    c.textAlign = "right";
    const y = topSpace + (i + 0.5) * size - look.top;
    if (y > topSpace - 4) c.fillText(shorten(shown(m.rowLabels[i]), 13), labelSpace - 6, y);
  }
  c.textAlign = "left";
  for (let j = cols[0]; j < cols[1]; j++) {
    const here = look.cursor?.[1] === j;
    if (j % every && !here) continue;
    const x = labelSpace + (j + 0.5) * size - look.left;
    if (x < labelSpace - 2) continue;
    c.save();
    c.translate(x, topSpace - 6);
    c.rotate(-Math.PI / 3);
    c.fillStyle = here ? strong : ink;
    c.fillText(shorten(shown(m.colLabels[j]), 12), 0, 0);
    c.restore();
  }
}

/** Draws what is in sight; also used for PNG export. */
export function drawMap(c: CanvasRenderingContext2D, look: Look): void {
  const { m, size } = look;
  const rows: [number, number] = [Math.max(0, Math.floor(look.top / size)), Math.min(m.rows, Math.ceil((look.top + look.height - topSpace) / size))];
  const cols: [number, number] = [Math.max(0, Math.floor(look.left / size)), Math.min(m.cols, Math.ceil((look.left + look.width - labelSpace) / size))];
  c.fillStyle = isDark() ? "#14161a" : "#ffffff";
  c.fillRect(0, 0, look.width, look.height);
  drawCells(c, look, rows, cols);
  drawLabels(c, look, rows, cols);
  const mark = (i: number, j: number, color: string) => {
    c.strokeStyle = color;
    c.lineWidth = 2;
    c.strokeRect(labelSpace + j * size - look.left, topSpace + i * size - look.top, size, size);
  };
  if (look.pinned >= 0 && look.pinned < m.rows) {
    c.strokeStyle = isDark() ? "#ffb454" : "#b1450b";
    c.lineWidth = 1.5;
    c.strokeRect(labelSpace - look.left, topSpace + look.pinned * size - look.top, m.cols * size, size);
  }
  if (look.cursor) mark(look.cursor[0], look.cursor[1], isDark() ? "#ffb454" : "#b1450b");
}

export function mapSize(m: Matrix, size: number): { width: number; height: number } {
  return { width: labelSpace + m.cols * size + 60, height: topSpace + m.rows * size + 4 };
}

interface Props {
  m: Matrix;
  scale: Scale;
  label: string;
  pinned: number;
  onPin: (row: number) => void;
  onKey?: (key: string) => boolean;
}

export function HeatMap({ m, scale, label, pinned, onPin, onKey }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [area, setArea] = useState({ width: 0, height: 0 });
  const [cursor, setCursor] = useState<[number, number] | null>(null);
  const [ready, setReady] = useState(false);
  const size = cellSize(m, area.width, area.height);

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
    target.width = Math.round(area.width * ratio);
    target.height = Math.round(area.height * ratio);
    const c = target.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawMap(c, { m, scale, size, left: from.scrollLeft, top: from.scrollTop, ...area, cursor, pinned });
    setReady(true);
  };
  useEffect(paint, [m, scale, area, cursor, pinned, size, chosenTheme.value, systemDark.value]);

  const at = (e: MouseEvent): [number, number] | null => {
    const r = canvas.current!.getBoundingClientRect();
    const j = Math.floor((e.clientX - r.left - labelSpace + box.current!.scrollLeft) / size);
    const i = Math.floor((e.clientY - r.top - topSpace + box.current!.scrollTop) / size);
    return i >= 0 && j >= 0 && i < m.rows && j < m.cols && e.clientX - r.left >= labelSpace && e.clientY - r.top >= topSpace ? [i, j] : null;
  };
  const reveal = (i: number, j: number) => {
    const b = box.current!;
    const x = j * size, y = i * size;
    if (x < b.scrollLeft) b.scrollLeft = x;
    if (x + size > b.scrollLeft + area.width - labelSpace) b.scrollLeft = x + size - area.width + labelSpace;
    if (y < b.scrollTop) b.scrollTop = y;
    if (y + size > b.scrollTop + area.height - topSpace) b.scrollTop = y + size - area.height + topSpace;
  };
  const key = (e: KeyboardEvent) => {
    const [i, j] = cursor ?? [0, 0];
    const step = e.shiftKey ? 10 : 1;
    const moves: Record<string, [number, number]> = {
      ArrowUp: [i - step, j], ArrowDown: [i + step, j], ArrowLeft: [i, j - step], ArrowRight: [i, j + step],
      Home: [i, 0], End: [i, m.cols - 1], m: [i, rowMaximum(m, i)],
    };
    const move = moves[e.key];
    if (move) {
      const next: [number, number] = [Math.max(0, Math.min(m.rows - 1, move[0])), Math.max(0, Math.min(m.cols - 1, move[1]))];
      setCursor(next);
      reveal(...next);
    } else if (e.key === "Enter") onPin(pinned === i ? -1 : i);
    else if (e.key === "Escape") {
      setCursor(null);
      onPin(-1);
    } else if (!onKey?.(e.key)) return;
    e.preventDefault();
  };
  const full = mapSize(m, size);
  return (
    <div class="map">
      <div
        class="map-box" ref={box} tabIndex={0} role="application" aria-label={label}
        data-ready={ready ? "true" : "false"} data-rows={m.rows} data-cols={m.cols} data-size={size}
        onScroll={paint} onKeyDown={key}
        onMouseMove={(e) => setCursor(at(e))} onMouseLeave={() => setCursor(null)}
        onClick={(e) => {
          const where = at(e);
          if (where) onPin(pinned === where[0] ? -1 : where[0]);
        }}
      >
        <canvas ref={canvas} style={{ width: `${area.width}px`, height: `${area.height}px` }} />
        <div style={{ width: `${full.width}px`, height: `${Math.max(1, full.height - area.height)}px` }} />
      </div>
      <p class="readout" aria-live="polite">
        {cursor && cursor[0] < m.rows && cursor[1] < m.cols ? describeCell(m, cursor[0], cursor[1]) : "Point at a cell, or focus the map and use the arrow keys."}
      </p>
    </div>
  );
}

/** The running text above a map, tinted by one row's weights. */
export function TintedTokens({ m, row }: { m: Matrix; row: number }) {
  if (row < 0 || row >= m.rows) return null;
  const table = colorTable("abs");
  return (
    <p class="tinted" aria-label={`Keys tinted by the weights of query ${row}`}>
      <b>{shown(m.rowLabels[row])}</b> looks at{" "}
      {m.colLabels.map((token, j) => {
        const v = cell(m, row, j);
        const k = Math.round(Math.max(0, Math.min(1, v || 0)) * 255) * 4;
        const dark = (table[k] + table[k + 1] + table[k + 2]) / 3 < 128;
        return (
          <span style={{ background: `rgb(${table[k]},${table[k + 1]},${table[k + 2]})`, color: dark ? "#fff" : "#111" }} title={Number.isNaN(v) ? "masked" : v.toFixed(4)}>
            {shown(token)}
          </span>
        );
      })}
    </p>
  );
}
