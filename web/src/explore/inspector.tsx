// The inspector: one row of the map in numbers, and how a score became a weight.
import { useState } from "preact/hooks";
import type { Site, Trace } from "../api";
import { colorTable, css } from "../colors";
import { useAnswer } from "../hooks";
import { cell, keysByWeight, type Matrix, rowEntropy } from "../map/matrix";
import { shown } from "../map/tokens";
import { fetchMap } from "../trace";

const most = 8;

interface Props {
  t: Trace;
  site: Site;
  layer: number;
  head: number;
  m: Matrix;
  row: number;
}

/** The scores of one row, once they are wanted. */
function useScores({ t, site, layer, head, row }: Props, wanted: boolean): Matrix | null {
  const [held, hold] = useState<{ key: string; m: Matrix } | null>(null);
  const key = `${t.id} ${site.id} ${layer} ${head} ${row}`;
  useAnswer(
    () => wanted && fetchMap(t, { site, layer, head, what: "scores", rows: [row, row + 1] }),
    [key, wanted],
    (m) => hold({ key, m }),
    () => hold(null),
  );
  return held?.key === key ? held.m : null;
}

const Bar = ({ weight }: { weight: number }) => (
  <td class="bar-cell">
    <span class="bar" style={{ width: `${100 * Math.max(0, weight)}%`, background: css(colorTable("abs"), 0.65) }} />
  </td>
);

function RowTable({ m, row, order, scores }: { m: Matrix; row: number; order: number[]; scores: Matrix | null }) {
  const rest = order.slice(most).reduce((a, j) => a + cell(m, row, j), 0);
  return (
    <table>
      <tbody>
        {order.slice(0, most).map((j) => (
          <tr>
            <th>{shown(m.colLabels[j])}</th>
            <td class="n">{j}</td>
            <Bar weight={cell(m, row, j)} />
            <td class="n">{cell(m, row, j).toFixed(4)}</td>
            {scores && (
              <td class="n" title="score">
                {cell(scores, 0, j).toFixed(2)}
              </td>
            )}
          </tr>
        ))}
        {order.length > most && (
          <tr>
            <th>{order.length - most} others</th>
            <td />
            <Bar weight={rest} />
            <td class="n">{rest.toFixed(4)}</td>
            {scores && <td />}
          </tr>
        )}
      </tbody>
    </table>
  );
}

export function Inspector(props: Props) {
  const { m, row } = props;
  const [open, setOpen] = useState(false);
  const good = row >= 0 && row < m.rows && !m.pool && m.kind === "weights";
  const scores = useScores(props, open && good);
  if (!good)
    return (
      <section class="inspector">
        <h3>One query</h3>
        <p class="caption">Click a row of the map to see its weights as numbers.</p>
      </section>
    );
  const order = keysByWeight(m, row);
  return (
    <section class="inspector" aria-live="polite">
      <h3>
        “{shown(m.rowLabels[row])}” ({row}) looks at
      </h3>
      <RowTable m={m} row={row} order={order} scores={scores} />
      <p class="caption">
        Entropy {(100 * rowEntropy(m, row)).toFixed(0)} % of the possible; {order.length} keys visible.
      </p>
      <details open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>From score to weight</summary>
        <p class="caption">
          A score z<sub>j</sub> tells how well key j fits the query; the weight is e
          <sup>
            z<sub>j</sub>
          </sup>{" "}
          divided by the sum of all e<sup>z</sup> of the row (for softmax).
          {scores ? " The last column holds the scores." : ""}
        </p>
      </details>
    </section>
  );
}
