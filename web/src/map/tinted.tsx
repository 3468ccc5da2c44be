// Running text tinted by weights.
import { useRef } from "preact/hooks";
import { colorTable, css, inkOn } from "../colors";
import { useInSight } from "../hooks";
import { cell, type Matrix, rowMaximum } from "./matrix";
import { shown } from "./tokens";

const mostTinted = 300;

interface Props {
  m: Matrix; // its first row tints
  row: number; // the query's number
  chosen?: number; // a key that is looked at
  pick?: (key: number) => void; // makes tokens buttons
}

/** All keys of one query as running text: the darker, the nearer to the row's largest weight; masked ones hatched. */
export function TintedTokens({ m, row, chosen, pick }: Props) {
  const table = colorTable("abs");
  const best = rowMaximum(m, 0);
  const top = cell(m, 0, best) || 1;
  // Of a long text, the part around the key looked at.
  const from = Math.max(0, Math.min(m.cols - mostTinted, (chosen ?? best) - mostTinted / 2));
  const to = Math.min(m.cols, from + mostTinted);
  const box = useRef<HTMLParagraphElement>(null);
  useInSight(box, (chosen ?? best) - from);
  const token = (j: number) => {
    const v = cell(m, 0, j);
    const masked = Number.isNaN(v);
    const look = masked ? {} : { style: { background: css(table, v / top), color: inkOn(table, v / top) } };
    const name = masked ? "masked" : v.toFixed(4);
    const kind = `${masked ? "masked-token" : ""}${j === chosen ? " here" : ""}`;
    const text = shown(m.colLabels[j]);
    if (!pick)
      return (
        <span class={kind} title={name} {...look}>
          {text}
        </span>
      );
    return (
      <button type="button" class={kind} title={name} aria-pressed={j === chosen} onClick={() => pick(j)} {...look}>
        {text}
      </button>
    );
  };
  return (
    <p
      class="tinted"
      ref={box}
      role="group"
      aria-label={`Keys tinted by the weights of query ${row}, the largest darkest`}
    >
      {from > 0 && "… "}
      {Array.from({ length: to - from }, (_, k) => token(from + k))}
      {to < m.cols && " …"}
    </p>
  );
}
