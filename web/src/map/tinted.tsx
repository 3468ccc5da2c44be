// Running text tinted by weights.
import { colorTable, css, inkOn } from "../colors";
import { cell, type Matrix, rowMaximum } from "./matrix";
import { shown } from "./tokens";

const mostTinted = 300;

/** The running text above a map, tinted by one row's weights. */
export function TintedTokens({ m, row }: { m: Matrix; row: number }) {
  if (row < 0 || row >= m.rows || m.pool) return null;
  const table = colorTable("abs");
  // Of a long text, the part around the largest weight.
  const from = Math.max(0, Math.min(m.cols - mostTinted, rowMaximum(m, row) - mostTinted / 2));
  const to = Math.min(m.cols, from + mostTinted);
  return (
    <p class="tinted" role="group" aria-label={`Keys tinted by the weights of query ${row}`}>
      <b>{shown(m.rowLabels[row])}</b> looks at {from > 0 && "… "}
      {m.colLabels.slice(from, to).map((token, k) => {
        const v = cell(m, row, from + k);
        const style = { background: css(table, v || 0), color: inkOn(table, v || 0) };
        return (
          <span style={style} title={Number.isNaN(v) ? "masked" : v.toFixed(4)}>
            {shown(token)}
          </span>
        );
      })}
      {to < m.cols && " …"}
    </p>
  );
}
