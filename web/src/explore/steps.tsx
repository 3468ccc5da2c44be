// Steps: follow the decoding token by token, where it looked and what else it might have written.
import { useEffect, useState } from "preact/hooks";
import type { Candidate, Site, Trace } from "../api";
import { colorTable, css, inkOn } from "../colors";
import { useTimer } from "../hooks";
import { cell, keysByWeight, type Matrix, rowEntropy } from "../map/matrix";
import { shorten, shown } from "../map/tokens";
import { csv, csvWeight } from "../save/csv";
import { exporting } from "../save/files";
import { svgOf, svgText, svgTitle } from "../save/svg";
import { state, update } from "../state";
import { chosenHead, siteName, useMap } from "../trace";
import { Bars } from "./bars";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** One step of a map's rows, with what the model might have written there. */
interface Step {
  m: Matrix;
  step: number;
  written: boolean; // the row is a token written, not one read
  candidates?: Candidate[];
}

/** The token that came: the one written here, or the next one of a text that is read. */
const came = ({ m, step, written }: Step): string | undefined => m.rowLabels[written ? step : step + 1];

function sentence(s: Step): string {
  const { m, step, written, candidates } = s;
  const token = came(s);
  const p = candidates?.find((c) => c.token === token)?.p.toFixed(4);
  const predicted = written ? ` with probability ${p}` : `, predicted “${shown(token ?? "")}” with probability ${p}`;
  const verb = written ? "wrote" : "read";
  const spread = `${(100 * rowEntropy(m, step)).toFixed(0)} % of the possible`;
  const first = `Step ${step}: ${verb} “${shown(m.rowLabels[step])}”${p === undefined ? "" : predicted}`;
  return `${first}, looking with an entropy of ${spread}.`;
}

function stepSvg(title: string, { m, step }: Step): string {
  const fill = css(colorTable("abs"), 0.65);
  const rows = m.colLabels.map((label, j) => {
    const v = cell(m, step, j) || 0;
    const y = 50 + 18 * j;
    const bar = `<rect x="120" y="${y - 10}" width="${300 * v}" height="12" fill="${fill}"/>`;
    return (
      svgText(112, y, shorten(shown(label), 13), 'text-anchor="end"') + bar + svgText(126 + 300 * v, y, v.toFixed(4))
    );
  });
  return svgOf(520, 60 + 18 * m.cols, svgTitle(title) + rows.join(""));
}

const stepCsv = ({ m, step }: Step): string =>
  csv([["key", "token", "weight"], ...m.colLabels.map((label, j) => [j, label, csvWeight(cell(m, step, j))])]);

export function StepsView({ t, site }: { t: Trace; site: Site }) {
  const { model, query } = state.value;
  const { layer, head } = chosenHead(site);
  const m = useMap(t, { site, layer, head });
  const step = Math.max(0, Math.min(site.queries - 1, query));
  // Rows of cross and decoder sites are tokens written; in a language model, step i has read token i and predicts
  // token i + 1. An encoder's rows predict nothing.
  const written = site.rows === "target";
  const candidates = written || t.tokens.target.length === 0 ? t.candidates?.[step] : undefined;
  const title = `${model}: ${siteName(site)}, layer ${layer}, head ${head}, step ${step}`;
  useEffect(() => {
    if (!m || m.pool) return;
    const s = { m, step, written, candidates };
    exporting.value = { title, caption: sentence(s), svg: () => stepSvg(title, s), csv: () => stepCsv(s) };
  }, [m, step]);
  if (!m) return <p>Loading…</p>;
  if (m.pool) return <p class="empty">This input is too long to follow step by step.</p>;
  return <Steps t={t} s={{ m, step, written, candidates }} />;
}

function Steps({ t, s }: { t: Trace; s: Step }) {
  const { m, step, written } = s;
  const last = m.rows - 1;
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
  const force =
    written && t.written ? (id: number) => update({ beginning: [...t.written!.slice(0, step), id].join() }) : undefined;
  return (
    <div
      class="steps"
      data-ready="true"
      tabIndex={0}
      role="group"
      aria-label="Decoding, step by step: left and right arrows, Space plays"
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
      <Timeline tokens={m.rowLabels} step={step} go={go} />
      <p class="caption" aria-live="polite">
        {sentence(s)}
      </p>
      <KeysTinted m={m} step={step} />
      <div class="step-tables">
        <Looked m={m} step={step} />
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

function Timeline({ tokens, step, go }: { tokens: string[]; step: number; go: (i: number) => void }) {
  const when = (i: number) => (i === step ? "token here" : i < step ? "token" : "token later");
  return (
    <p class="timeline">
      {tokens.slice(0, 200).map((token, i) => (
        <button type="button" class={when(i)} aria-current={i === step ? "step" : undefined} onClick={() => go(i)}>
          {shown(token)}
        </button>
      ))}
    </p>
  );
}

function KeysTinted({ m, step }: { m: Matrix; step: number }) {
  const table = colorTable("abs");
  return (
    <p class="tinted" role="group" aria-label="Keys tinted by their weight at this step">
      {m.colLabels.slice(0, 300).map((token, j) => {
        const v = cell(m, step, j);
        if (Number.isNaN(v))
          return (
            <span class="masked-token" title="masked">
              {shown(token)}
            </span>
          );
        return (
          <span style={{ background: css(table, v), color: inkOn(table, v) }} title={v.toFixed(4)}>
            {shown(token)}
          </span>
        );
      })}
    </p>
  );
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
      <h3>{s.written ? "What might come here" : "What might come next"}</h3>
      <Bars rows={[...rows, { label: "all others", value: Math.max(0, others) }]} color={css(colorTable("abs"), 0.5)} />
      {force && <p class="caption">Click one to make the model say it here, and see how it continues.</p>}
    </section>
  );
}
