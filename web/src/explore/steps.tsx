// Steps: follow the decoding token by token, where it looked and what else it might have written.
import { useEffect, useState } from "preact/hooks";
import type { Candidate, Site, Trace } from "../api";
import { colorTable, css } from "../colors";
import { choicesAre, touch } from "../device";
import { useTimer } from "../hooks";
import { cell, keysByWeight, type Matrix, rowEntropy, rowOf, spread } from "../map/matrix";
import { TintedTokens } from "../map/tinted";
import { shorten, shown } from "../map/tokens";
import { csv, csvWeight } from "../save/csv";
import { exportTrace } from "../save/files";
import { svgText, titled } from "../save/svg";
import { state, update } from "../state";
import { chosenHead, mapName, trace, useMap } from "../trace";
import { Bars } from "./bars";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** One step: a row of a map where there is one, with what the model might have written there. */
interface Step {
  m: Matrix | null; // without attention there is none
  tokens: string[]; // of all steps
  step: number;
  written: boolean; // the row is a token written, not one read
  candidates?: Candidate[];
}

/** The token that came: the one written here, or the next one of a text that is read. */
const came = ({ tokens, step, written }: Step): string | undefined => tokens[written ? step : step + 1];

function sentence(s: Step): string {
  const { m, tokens, step, written, candidates } = s;
  const token = came(s);
  const p = candidates?.find((c) => c.token === token)?.p.toFixed(4);
  const predicted = written ? ` with probability ${p}` : `, predicted “${shown(token ?? "")}” with probability ${p}`;
  const verb = written ? "wrote" : "read";
  const first = `Step ${step}: ${verb} “${shown(tokens[step])}”${p === undefined ? "" : predicted}`;
  return m ? `${first}; entropy of its weights ${spread(rowEntropy(m, step))}.` : `${first}.`;
}

function stepSvg(title: string, { m, step }: Step & { m: Matrix }): string {
  const fill = css(colorTable("abs"), 0.65);
  const rows = m.colLabels.map((label, j) => {
    const v = cell(m, step, j) || 0;
    const y = 20 + 18 * j;
    const bar = `<rect x="120" y="${y - 10}" width="${300 * v}" height="12" fill="${fill}"/>`;
    return (
      svgText(112, y, shorten(shown(label), 13), 'text-anchor="end"') + bar + svgText(126 + 300 * v, y, v.toFixed(4))
    );
  });
  return titled(title, { width: 520, height: 30 + 18 * m.cols }, rows.join(""));
}

const stepCsv = ({ m, step }: Step & { m: Matrix }): string =>
  csv([["key", "token", "weight"], ...m.colLabels.map((label, j) => [j, label, csvWeight(cell(m, step, j))])]);

const written = (t: Trace): boolean => t.tokens.target.length > 0;

/** How sure the model was of each token it wrote. */
const candidatesCsv = (t: Trace): string =>
  csv([
    ["step", "candidate", "probability"],
    ...(t.candidates ?? []).flatMap((list, i) => list.map((c) => [i, c.token, c.p])),
  ]);

/** Step by step without any attention: what was written, how sure the model was, and what else it might have been. */
export function WrittenView({ t }: { t: Trace }) {
  const tokens = written(t) ? t.tokens.target : t.tokens.source;
  const step = Math.max(0, Math.min(tokens.length - 1, state.value.query));
  const s: Step = { m: null, tokens, step, written: written(t), candidates: t.candidates?.[step] };
  useEffect(() => {
    const title = `${t.model}: what it wrote`;
    const caption = `This model has no attention. ${sentence(s)}`;
    const text = tokens.map((token, i) => `${shown(token)} ${t.candidates?.[i]?.[0]?.p.toFixed(4) ?? ""}`);
    const lines = text.map((line, i) => svgText(8, 20 + 18 * i, line)).join("");
    const svg = (bare?: boolean) => titled(bare ? "" : title, { width: 520, height: 30 + 18 * text.length }, lines);
    exportTrace(t, { title, caption, svg, csv: () => candidatesCsv(t) });
  }, [t.id, step]);
  if (!tokens.length) return <p class="empty">This model has no attention to look at; its output is {choicesAre}.</p>;
  return (
    <>
      <p class="caption">
        This model has no attention: it knows the source only by what its state carries. How sure it was of each token:
      </p>
      <Steps t={t} s={s} />
    </>
  );
}

export function StepsView({ t, site }: { t: Trace; site: Site }) {
  const { layer, head } = chosenHead(site);
  const m = useMap(t, { site, layer, head });
  const step = Math.max(0, Math.min(site.queries - 1, state.value.query));
  // Rows of cross and decoder sites are tokens written; in a language model, step i has read token i and predicts
  // token i + 1. An encoder's rows predict nothing.
  const rowsWritten = site.rows === "target";
  const candidates = rowsWritten || !written(t) ? t.candidates?.[step] : undefined;
  const title = `${t.model}: ${mapName(site)}, step ${step}`;
  useEffect(() => {
    if (!m || m.pool) return;
    const s = { m, tokens: m.rowLabels, step, written: rowsWritten, candidates };
    const svg = (bare?: boolean) => stepSvg(bare ? "" : title, s);
    exportTrace(t, { title, caption: sentence(s), svg, csv: () => stepCsv(s) });
  }, [m, step]);
  if (!m) return <p>Loading…</p>;
  if (m.pool) return <p class="empty">This input is too long to follow step by step.</p>;
  return <Steps t={t} s={{ m, tokens: m.rowLabels, step, written: rowsWritten, candidates }} />;
}

/** Makes the model write a token in place of the one that came at this step, where that is possible. */
function forcing(t: Trace, { step, written: own }: Step): ((id: number) => void) | undefined {
  if (!t.written || (written(t) && !own) || t.id !== trace.value?.id) return undefined;
  const place = own ? step : step + 1 - (t.first_written ?? 0);
  if (place < 0) return undefined; // a token of the input
  return (id) => update({ beginning: [...t.written!.slice(0, place), id].join() });
}

function Steps({ t, s }: { t: Trace; s: Step }) {
  const { m, step, tokens } = s;
  const last = tokens.length - 1;
  const [playing, setPlaying] = useState(false);
  const go = (i: number) => update({ query: Math.max(0, Math.min(last, i)) });
  const tick = () => {
    const next = Math.max(0, state.value.query) + 1;
    if (next > last) setPlaying(false);
    else go(next);
  };
  useTimer(playing, calm.matches ? 1500 : 700, tick, [last]);
  const play = () => {
    if (!playing && step === last) go(0);
    setPlaying(!playing);
  };
  const press = (e: KeyboardEvent) => {
    if (e.target instanceof HTMLButtonElement && e.key === " ") return;
    if (e.key === "ArrowRight") go(step + 1);
    else if (e.key === "ArrowLeft") go(step - 1);
    else if (e.key === "Home") go(0);
    else if (e.key === "End") go(last);
    else if (e.key === " ") setPlaying(!playing);
    else return;
    e.preventDefault();
  };
  const force = forcing(t, s);
  return (
    <div
      class="steps"
      data-ready="true"
      tabIndex={0}
      role="group"
      aria-label={touch ? "Decoding, step by step" : "Decoding, step by step: left and right arrows, Space plays"}
      onKeyDown={press}
    >
      <div class="controls">
        <button type="button" aria-label="Step before" disabled={step === 0} onClick={() => go(step - 1)}>
          ◀
        </button>
        <button type="button" onClick={play}>
          {playing ? "Pause" : "Play"}
        </button>
        <button type="button" aria-label="Next step" disabled={step === last} onClick={() => go(step + 1)}>
          ▶
        </button>
        <input
          type="range"
          aria-label="Step"
          min={0}
          max={last}
          value={step}
          onInput={(e) => go(Number(e.currentTarget.value))}
        />
      </div>
      <Forced />
      <Timeline tokens={tokens} step={step} go={go} />
      <p class="caption" aria-live="polite">
        {sentence(s)}
      </p>
      {m && <KeysTinted m={m} step={step} />}
      <div class="step-tables">
        {m && <Looked m={m} step={step} />}
        {s.candidates && <Candidates s={s} candidates={s.candidates} force={force} />}
      </div>
    </div>
  );
}

/** Says how much of the output a person chose. */
function Forced() {
  const { beginning } = state.value;
  if (!beginning) return null;
  const n = beginning.split(",").length;
  return (
    <p class="caption" id="forced">
      You chose the first {n === 1 ? "token" : `${n} tokens`}; the model wrote the rest.{" "}
      <button type="button" class="chip" onClick={() => update({ beginning: "" })}>
        Let it choose
      </button>
    </p>
  );
}

const mostTokens = 200;

/** The tokens to step to; of a long text, those around the step. */
function Timeline({ tokens, step, go }: { tokens: string[]; step: number; go: (i: number) => void }) {
  const when = (i: number) => (i === step ? "token here" : i < step ? "token" : "token later");
  const from = Math.max(0, Math.min(tokens.length - mostTokens, step - mostTokens / 2));
  const to = Math.min(tokens.length, from + mostTokens);
  return (
    <p class="timeline">
      {from > 0 && "… "}
      {Array.from({ length: to - from }, (_, k) => from + k).map((i) => (
        <button type="button" class={when(i)} aria-current={i === step ? "step" : undefined} onClick={() => go(i)}>
          {shown(tokens[i])}
        </button>
      ))}
      {to < tokens.length && " …"}
    </p>
  );
}

function KeysTinted({ m, step }: { m: Matrix; step: number }) {
  return <TintedTokens m={{ ...m, rows: 1, values: rowOf(m, step) }} row={step} />;
}

function Looked({ m, step }: { m: Matrix; step: number }) {
  const keys = keysByWeight(m, step).slice(0, 10);
  const rows = keys.map((j) => ({ label: `${shown(m.colLabels[j])} (${j})`, value: cell(m, step, j) }));
  return (
    <section>
      <h3>Where it looks</h3>
      <Bars rows={rows} color={css(colorTable("abs"), 0.65)} />
    </section>
  );
}

interface CandidateProps {
  s: Step;
  candidates: Candidate[];
  force?: (id: number) => void;
}

function Candidates({ s, candidates, force }: CandidateProps) {
  const others = candidates.reduce((rest, c) => rest - c.p, 1);
  const rows = candidates.map((c) => ({
    label: c.token,
    value: c.p,
    chosen: c.token === came(s),
    pick: force && (() => force(c.id)),
  }));
  return (
    <section>
      <h3>{s.written ? "Alternatives for this token" : "Alternatives for the next token"}</h3>
      <Bars rows={[...rows, { label: "all others", value: Math.max(0, others) }]} color={css(colorTable("abs"), 0.5)} />
      {force && (
        <p class="caption">{touch ? "Touch" : "Click"} one to make the model write it, and see how it continues.</p>
      )}
    </section>
  );
}
