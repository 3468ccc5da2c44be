// The inspector: one row of the map in numbers, scores and weights.
import { useState } from "preact/hooks";
import type { Site, Trace } from "../api";
import { colorTable, css } from "../colors";
import { touch } from "../device";
import { useAnswer } from "../hooks";
import { cell, keysByWeight, type Matrix, rowEntropy, spread } from "../map/matrix";
import { TintedTokens } from "../map/tinted";
import { shown } from "../map/tokens";
import { update } from "../state";
import { fetchMap } from "../trace";

const most = 8;

interface Props {
  t: Trace;
  site: Site;
  layer: number;
  head: number;
  row: number;
}

interface Row {
  weights: Matrix; // one row
  scores: Matrix | null; // where there are any
}

/** One row's weights and scores; the last ones stay until the next are there. */
function useRow({ t, site, layer, head, row }: Props): Row | null {
  const [held, hold] = useState<{ place: string; row: number; value: Row } | null>(null);
  const place = `${t.id} ${site.id} ${layer} ${head}`;
  const good = row >= 0 && row < site.queries;
  const rows: [number, number] = [row, row + 1];
  const one = (what: "weights" | "scores") => fetchMap(t, { site, layer, head, what, rows });
  useAnswer(
    () => good && Promise.all([one("weights"), site.scores ? one("scores") : null]),
    [place, row],
    ([weights, scores]) => hold({ place, row, value: { weights, scores } }),
    () => hold(null),
  );
  return good && held?.place === place && held.row === row ? held.value : null;
}

const Bar = ({ weight }: { weight: number }) => (
  <td class="bar-cell">
    <span class="bar" style={{ width: `${100 * Math.max(0, weight)}%`, background: css(colorTable("abs"), 0.65) }} />
  </td>
);

/** The token of a key; where queries and keys are behind it, a way to the numbers between them. */
function KeyName({ label, open }: { label: string; open?: () => void }) {
  if (!open) return <>{shown(label)}</>;
  return (
    <button type="button" class="link" title="From q and k to this weight" onClick={open}>
      {shown(label)}
    </button>
  );
}

function RowTable({ value: { weights: m, scores }, row }: { value: Row; row: number }) {
  const order = keysByWeight(m, 0);
  const rest = order.slice(most).reduce((a, j) => a + cell(m, 0, j), 0);
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">key</th>
          <th scope="col" class="n">
            at
          </th>
          <th scope="col" class="n" colSpan={2}>
            weight
          </th>
          {scores && (
            <th scope="col" class="n">
              score
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {order.slice(0, most).map((j) => (
          <tr>
            <th scope="row">
              <KeyName
                label={m.colLabels[j]}
                open={scores ? () => update({ tab: "cell", query: row, key: j }) : undefined}
              />
            </th>
            <td class="n">{j}</td>
            <Bar weight={cell(m, 0, j)} />
            <td class="n">{cell(m, 0, j).toFixed(4)}</td>
            {scores && <td class="n">{cell(scores, 0, j).toFixed(2)}</td>}
          </tr>
        ))}
        {order.length > most && (
          <tr>
            <th scope="row">{order.length - most} others</th>
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
  const { row, t, site } = props;
  const value = useRow(props);
  if (!value)
    return (
      <section class="inspector">
        <h3>One query</h3>
        <p class="caption">
          {touch ? "Touch" : "Click"} a row of the map to see its weights{site.scores ? " and scores" : ""} as numbers.
        </p>
      </section>
    );
  const m = value.weights;
  const seen = keysByWeight(m, 0).length;
  return (
    <section class="inspector" aria-live="polite">
      <h3>
        “{shown(t.tokens[site.rows][row] ?? String(row))}” ({row}) looks at
      </h3>
      <TintedTokens m={m} row={row} />
      <RowTable value={value} row={row} />
      <p class="caption">
        Entropy {spread(rowEntropy(m, 0))}; {seen === 1 ? "1 key" : `${seen} keys`} visible.
      </p>
      {value.scores && (
        <button type="button" id="open-cell" onClick={() => update({ tab: "cell", query: row })}>
          From q and k to the weight
        </button>
      )}
    </section>
  );
}
