// The inspector: one row of the map in numbers, and how a score became a weight.
import { useEffect, useState } from "preact/hooks";
import type { Site, Trace } from "./api";
import { colorTable, css } from "./colors";
import { type Matrix, cell, rowEntropy, shown } from "./matrix";
import { fetchMap } from "./trace";

const most = 8;

interface Props {
  t: Trace;
  site: Site;
  layer: number;
  head: number;
  m: Matrix;
  row: number;
}

export function Inspector({ t, site, layer, head, m, row }: Props) {
  const [open, setOpen] = useState(false);
  const [scores, setScores] = useState<{ key: string; m: Matrix } | null>(null);
  const key = `${t.id} ${site.id} ${layer} ${head} ${row}`;
  const good = row >= 0 && row < m.rows && !m.pool && m.kind === "weights";
  useEffect(() => {
    if (!open || !good) return;
    let current = true;
    fetchMap(t, { site, layer, head, what: "scores", rows: [row, row + 1] }).then((s) => current && setScores({ key, m: s })).catch(() => current && setScores(null));
    return () => {
      current = false;
    };
  }, [key, open, good]);
  if (!good) return <section class="inspector"><h3>One query</h3><p class="caption">Click a row of the map to see its weights as numbers.</p></section>;
  const order = Array.from({ length: m.cols }, (_, j) => j).filter((j) => !Number.isNaN(cell(m, row, j))).sort((a, b) => cell(m, row, b) - cell(m, row, a));
  const top = order.slice(0, most);
  const rest = order.slice(most).reduce((a, j) => a + cell(m, row, j), 0);
  const color = css(colorTable("abs"), 0.65);
  const score = scores?.key === key ? scores.m : null;
  return (
    <section class="inspector" aria-live="polite">
      <h3>“{shown(m.rowLabels[row])}” ({row}) looks at</h3>
      <table>
        <tbody>
          {top.map((j) => (
            <tr>
              <th>{shown(m.colLabels[j])}</th>
              <td class="n">{j}</td>
              <td class="bar-cell"><span class="bar" style={{ width: `${100 * Math.max(0, cell(m, row, j))}%`, background: color }} /></td>
              <td class="n">{cell(m, row, j).toFixed(4)}</td>
              {score && <td class="n" title="score">{cell(score, 0, j).toFixed(2)}</td>}
            </tr>
          ))}
          {order.length > most && <tr><th>{order.length - most} others</th><td /><td class="bar-cell"><span class="bar" style={{ width: `${100 * rest}%`, background: color }} /></td><td class="n">{rest.toFixed(4)}</td>{score && <td />}</tr>}
        </tbody>
      </table>
      <p class="caption">Entropy {(100 * rowEntropy(m, row)).toFixed(0)} % of the possible; {order.length} keys visible.</p>
      <details open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>From score to weight</summary>
        <p class="caption">A score z<sub>j</sub> tells how well key j fits the query; the weight is e<sup>z<sub>j</sub></sup> divided by the sum of all e<sup>z</sup> of the row (for softmax). {score ? "The last column holds the scores." : ""}</p>
      </details>
    </section>
  );
}
