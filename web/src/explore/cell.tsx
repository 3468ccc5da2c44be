// From q and k to the weight: one query and one key, dimension by dimension, then score, weight and value.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type CellNumbers, getJson, query as queryString, type Site, type Trace } from "../api";
import { touch } from "../device";
import { useAnswer, useInSight } from "../hooks";
import { type Matrix, rowMaximum } from "../map/matrix";
import { TintedTokens } from "../map/tinted";
import { shown } from "../map/tokens";
import { csv } from "../save/csv";
import { exportTrace } from "../save/files";
import { figuresSvg } from "../save/svg";
import { state, update } from "../state";
import { cannot, chosenHead, fetchMap, mapName, useAbout } from "../trace";
import { type Strip, StripView } from "./strip";

const digits = (v: number): string => (Math.abs(v) >= 1e5 ? v.toExponential(3) : v.toFixed(4)).replace("-", "−");

/** One row of weights, to choose a key by. */
function useWeights(t: Trace, site: Site, row: number): Matrix | null {
  const { layer, head } = chosenHead(site);
  const [held, hold] = useState<{ key: string; m: Matrix } | null>(null);
  const key = `${t.id} ${site.id} ${layer} ${head} ${row}`;
  useAnswer(
    () => fetchMap(t, { site, layer, head, rows: [row, row + 1] }),
    [key],
    (m) => hold({ key, m }),
    cannot,
  );
  return held?.key === key ? held.m : null;
}

function useNumbers(t: Trace, site: Site, query: number, key: number): CellNumbers | null {
  const { layer, head } = chosenHead(site);
  return useAbout(t, `cell?${queryString({ site: site.id, layer, head, query, key })}`, getJson<CellNumbers>);
}

export function CellView({ t, site }: { t: Trace; site: Site }) {
  const s = state.value;
  const query = Math.max(0, Math.min(site.queries - 1, s.query));
  const row = useWeights(t, site, query);
  if (!row) return <p class="empty">Loading…</p>;
  const key = s.key >= 0 && s.key < site.keys ? s.key : rowMaximum(row, 0);
  return <Cell t={t} site={site} row={row} query={query} jey={key} />;
}

interface CellProps {
  t: Trace;
  site: Site;
  row: Matrix;
  query: number;
  jey: number; // the key's number; "key" is Preact's own
}

function Cell({ t, site, row, query, jey }: CellProps) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(-1);
  const c = useNumbers(t, site, query, jey);
  const rows = t.tokens[site.rows];
  const names = { q: shown(rows[query] ?? String(query)), k: shown(row.colLabels[jey]) };
  const title = `${t.model}: ${mapName(site)}, from “${names.q}” (${query}) to “${names.k}” (${jey})`;
  useEffect(() => {
    if (!c) return;
    const strips = () => Array.from(box.current!.querySelectorAll<SVGSVGElement>(".strip svg"));
    const svg = (bare?: boolean) => figuresSvg(title, strips(), bare);
    exportTrace(t, { title, caption: sentence(c), svg, csv: () => cellCsv(c) });
  }, [c]);
  const press = (e: KeyboardEvent) => {
    if (!c || e.target !== box.current) return;
    const last = c.terms.length - 1;
    const moves: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
    if (!(e.key in moves)) return;
    setAt(Math.max(0, Math.min(last, moves[e.key])));
    e.preventDefault();
  };
  return (
    <div
      class="cell-view"
      ref={box}
      data-ready={c ? "true" : "false"}
      tabIndex={0}
      role="group"
      aria-label={title}
      onKeyDown={press}
    >
      <Choose tokens={rows} site={site} query={query} row={row} jey={jey} />
      {c && <Numbers c={c} names={names} at={at} setAt={setAt} />}
    </div>
  );
}

const mostQueries = 300;

/** The query and the key. */
function Choose({ tokens, site, query, row, jey }: Omit<CellProps, "t"> & { tokens: string[] }) {
  const from = Math.max(0, Math.min(site.queries - mostQueries, query - mostQueries / 2));
  const to = Math.min(site.queries, from + mostQueries);
  const box = useRef<HTMLParagraphElement>(null);
  useInSight(box, query - from);
  return (
    <div class="choose">
      <div>
        <h3>Query</h3>
        <p class="tinted" ref={box} role="group" aria-label="Query">
          {from > 0 && "… "}
          {Array.from({ length: to - from }, (_, k) => from + k).map((i) => (
            <button
              type="button"
              class={i === query ? "here" : ""}
              aria-pressed={i === query}
              onClick={() => update({ query: i })}
            >
              {shown(tokens[i] ?? String(i))}
            </button>
          ))}
          {to < site.queries && " …"}
        </p>
      </div>
      <div>
        <h3>Key, tinted by its weight</h3>
        <TintedTokens m={row} row={query} chosen={jey} pick={(j) => update({ query, key: j })} />
      </div>
    </div>
  );
}

const isAdditive = (c: CellNumbers): boolean => c.score_weight.length > 0;

function stripsOf(c: CellNumbers, names: { q: string; k: string }): { met: Strip[]; given: Strip[] } {
  const product = isAdditive(c) ? "w · tanh(q + k)" : "q × k";
  return {
    met: [
      { name: "q", note: `the query of “${names.q}”`, values: c.query },
      { name: "k", note: `the key of “${names.k}”`, values: c.key },
      ...(isAdditive(c) ? [{ name: "w", note: "the score's own weights", values: c.score_weight }] : []),
      { name: product, note: "dimension by dimension", values: c.terms },
    ],
    given: [
      { name: "v", note: `the value of “${names.k}”`, values: c.value },
      { name: "weight × v", note: "what it hands over", values: c.contribution },
      { name: "output", note: `of this head for “${names.q}”: the sum over all keys`, values: c.output },
    ],
  };
}

interface NumbersProps {
  c: CellNumbers;
  names: { q: string; k: string };
  at: number;
  setAt: (dimension: number) => void;
}

function Numbers({ c, names, at, setAt }: NumbersProps) {
  const { met, given } = stripsOf(c, names);
  const hint = touch ? "Touch a bar to read it." : "Point at a bar, or use the arrow keys, to read it.";
  const said = (strips: Strip[]) => strips.map((s) => `${s.name} ${digits(s.values[at])}`).join(", ");
  const readable = at >= 0 && at < c.terms.length;
  return (
    <>
      <div class="strips">
        <div>
          {met.map((strip) => (
            <StripView strip={strip} at={at} onAt={setAt} />
          ))}
        </div>
        <Ladder c={c} names={names} />
        <div>
          {given.map((strip) => (
            <StripView strip={strip} at={at} onAt={setAt} />
          ))}
        </div>
      </div>
      <p class="readout" aria-live="polite">
        {readable ? `Dimension ${at}: ${said(met)}${at < c.value.length ? `; ${said(given)}` : ""}` : hint}
      </p>
      <p class="caption">{sentence(c)}</p>
      <Table strips={[...met, ...given]} />
    </>
  );
}

/** How the score came about, and the weight from it: a line for each step. */
function Ladder({ c, names }: { c: CellNumbers; names: { q: string; k: string } }) {
  const row = (what: string, formula: ComponentChildren, value: ComponentChildren) => (
    <tr>
      <th scope="row">{what}</th>
      <td>{formula}</td>
      <td class="n">{value}</td>
    </tr>
  );
  const bias = c.bias === null ? "masked: this key is hidden" : c.bias === 0 ? "no bias, not masked" : "+ bias";
  return (
    <table class="ladder">
      <caption>
        From “{names.q}” and “{names.k}” to the weight
      </caption>
      <tbody>
        {row("sum", isAdditive(c) ? "Σ w · tanh(q + k)" : "q · k = Σ q × k", digits(c.product))}
        {row("scale", <ScaleText c={c} />, digits(c.raw))}
        {c.softcap > 0 && row("softcap", `${c.softcap} · tanh(z / ${c.softcap})`, digits(c.capped))}
        {row("bias or mask", bias, c.bias === null ? "−∞" : digits(c.bias))}
        {row("score", "z", c.score === null ? "−∞" : digits(c.score))}
        {row(c.normaliser, <WeightText c={c} />, <b>{digits(c.weight)}</b>)}
      </tbody>
    </table>
  );
}

/** "× 1/√16" where the scale is the usual one. */
function ScaleText({ c }: { c: CellNumbers }) {
  const n = c.query.length;
  if (c.scale === 1) return <>× 1</>;
  const usual = Math.abs(c.scale * Math.sqrt(n) - 1) < 1e-9;
  return <>{usual ? `× 1/√${n} = × ${digits(c.scale)}` : `× ${digits(c.scale)}`}</>;
}

function WeightText({ c }: { c: CellNumbers }) {
  if (c.normaliser !== "softmax") return <>of the row of scores</>;
  if (c.score === null) return <>a masked key gets 0</>;
  return (
    <>
      e<sup>z − max</sup> / Σ = e<sup>{digits(c.score - (c.largest ?? 0))}</sup> / {digits(c.total)} ={" "}
      {digits(c.exponential)} / {digits(c.total)}
    </>
  );
}

function Table({ strips }: { strips: Strip[] }) {
  const most = Math.max(...strips.map((s) => s.values.length));
  return (
    <details>
      <summary>The numbers</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>dimension</th>
              {strips.map((s) => (
                <th class="n">{s.name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Array.from({ length: most }, (_, d) => (
              <tr>
                <td class="n">{d}</td>
                {strips.map((s) => (
                  <td class="n">{d < s.values.length ? digits(s.values[d]) : ""}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Which dimensions made the score. */
function sentence(c: CellNumbers): string {
  const order = c.terms.map((_, d) => d).sort((a, b) => Math.abs(c.terms[b]) - Math.abs(c.terms[a]));
  const top = order.slice(0, 3).map((d) => `${d} (${digits(c.terms[d])})`);
  const most = top.length > 1 ? `Dimensions ${top.join(", ")} count most in the sum ${digits(c.product)}.` : "";
  return `${most} The weight is ${digits(c.weight)}.`.trim();
}

const cellCsv = (c: CellNumbers): string =>
  csv([
    ["dimension", "query", "key", "term", "value", "contribution", "output"],
    ...Array.from({ length: Math.max(c.terms.length, c.value.length) }, (_, d) => [
      d,
      ...[c.query, c.key, c.terms, c.value, c.contribution, c.output].map((v) => v[d] ?? ""),
    ]),
  ]);
