// Token-to-token lines: queries left, keys right, one colour a head.
import { useEffect, useRef, useState } from "preact/hooks";
import { chosenTheme, isDark, seriesColor, systemDark } from "./colors";
import { type Matrix, cell, shorten, shown } from "./matrix";

const rowHeight = 22;
const side = 150;
const most = 64; // tokens in the window

/** The fewest keys that reach `share` of a row's weight. */
export function strongest(m: Matrix, i: number, share: number): number[] {
  const order = Array.from({ length: m.cols }, (_, j) => j).filter((j) => cell(m, i, j) > 0).sort((a, b) => cell(m, i, b) - cell(m, i, a));
  let sum = 0;
  const total = order.reduce((a, j) => a + cell(m, i, j), 0);
  const kept: number[] = [];
  for (const j of order) {
    if (sum >= share * total) break;
    kept.push(j);
    sum += cell(m, i, j);
  }
  return kept;
}

interface Props {
  maps: { head: number; m: Matrix }[];
  share: number;
  pinned: number;
  onPin: (row: number) => void;
}

export function Lines({ maps, share, pinned, onPin }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const [first, setFirst] = useState(0);
  const [over, setOver] = useState(-1);
  const m = maps[0]?.m;
  const rows = m ? Math.min(most, m.rows - first) : 0;
  const cols = m ? Math.min(most, m.cols - Math.min(first, Math.max(0, m.cols - most))) : 0;
  const firstCol = m ? Math.min(first, Math.max(0, m.cols - most)) : 0;
  const height = (Math.max(rows, cols) + 1) * rowHeight;
  const focus = over >= 0 ? over : pinned;
  let count = 0;

  useEffect(() => {
    const watch = new ResizeObserver(() => box.current && setWidth(box.current.clientWidth));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);

  const y = (i: number) => (i + 1) * rowHeight;
  useEffect(() => {
    const target = canvas.current;
    if (!target || !m) return;
    const ratio = devicePixelRatio || 1;
    target.width = width * ratio;
    target.height = height * ratio;
    const c = target.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = isDark() ? "#14161a" : "#ffffff";
    c.fillRect(0, 0, width, height);
    c.lineWidth = 2;
    for (const { head, m: map } of maps) {
      c.strokeStyle = seriesColor(head);
      for (let i = first; i < first + rows; i++) {
        if (focus >= 0 && focus !== i) continue;
        for (const j of strongest(map, i, share)) {
          count++;
          c.globalAlpha = Math.min(1, cell(map, i, j));
          const end = Math.max(-1, Math.min(cols, j - firstCol));
          c.beginPath();
          c.moveTo(side, y(i - first));
          c.bezierCurveTo(width / 2, y(i - first), width / 2, y(end), width - side, y(end));
          c.stroke();
        }
      }
    }
    c.globalAlpha = 1;
    c.font = "13px ui-monospace, monospace";
    c.textBaseline = "middle";
    const ink = isDark() ? "#e6e8ec" : "#1b1f24";
    for (let i = 0; i < rows; i++) {
      c.fillStyle = focus === first + i ? (isDark() ? "#ffb454" : "#b1450b") : ink;
      c.textAlign = "right";
      c.fillText(shorten(shown(m.rowLabels[first + i]), 17), side - 8, y(i));
    }
    c.textAlign = "left";
    c.fillStyle = ink;
    for (let j = 0; j < cols; j++) c.fillText(shorten(shown(m.colLabels[firstCol + j]), 17), width - side + 8, y(j));
    target.dataset.lines = String(count);
  }, [maps, share, width, first, focus, chosenTheme.value, systemDark.value]);

  if (!m) return <p>Choose at least one head.</p>;
  const rowAt = (e: MouseEvent) => {
    const r = canvas.current!.getBoundingClientRect();
    const i = Math.round((e.clientY - r.top) / rowHeight) - 1 + first;
    return i >= first && i < first + rows && e.clientX - r.left < r.width / 2 ? i : -1;
  };
  return (
    <div class="lines" ref={box}>
      {m.rows > most && (
        <label class="window">
          tokens {first}–{first + rows - 1} of {m.rows}
          <input type="range" min={0} max={m.rows - most} value={first} onInput={(e) => setFirst(Number(e.currentTarget.value))} />
        </label>
      )}
      <canvas
        ref={canvas} tabIndex={0} role="img" style={{ width: "100%", height: `${height}px` }}
        aria-label={`Lines from ${m.rows} queries to ${m.cols} keys; opacity is the weight, colour the head`}
        onMouseMove={(e) => setOver(rowAt(e))} onMouseLeave={() => setOver(-1)}
        onClick={(e) => onPin(rowAt(e) === pinned ? -1 : rowAt(e))}
        onKeyDown={(e) => {
          if (e.key === "ArrowDown") onPin(Math.min(m.rows - 1, pinned + 1));
          else if (e.key === "ArrowUp") onPin(Math.max(0, pinned - 1));
          else if (e.key === "Escape") onPin(-1);
          else return;
          e.preventDefault();
        }}
      />
      {focus >= 0 && (
        <table class="bars">
          <caption>“{shown(m.rowLabels[focus])}” looks at</caption>
          <tbody>
            {maps.map(({ head, m: map }) => (
              <tr>
                <th style={{ color: seriesColor(head) }}>head {head}</th>
                <td>
                  {strongest(map, focus, share).slice(0, 6).map((j) => (
                    <span>
                      {shown(map.colLabels[j])} <b>{cell(map, focus, j).toFixed(3)}</b>
                    </span>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
