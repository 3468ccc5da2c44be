// Steps: follow the decoding token by token, where it looked and what else it might have written.
import { useEffect, useState } from "preact/hooks";
import type { Site, Trace } from "./api";
import { colorTable, css, inkOn } from "./colors";
import { escape, exporting, svgOf } from "./export";
import { cell, csvLine, rowEntropy, shorten, shortest, shown } from "./matrix";
import { state, update } from "./state";
import { siteName, useMap } from "./trace";

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function StepsView({ t, site }: { t: Trace; site: Site }) {
  const s = state.value;
  const layer = Math.min(s.l, site.layers - 1), head = Math.min(s.h, site.heads - 1);
  const m = useMap(t, { site, layer, head });
  const [playing, setPlaying] = useState(false);
  const step = Math.max(0, Math.min(site.queries - 1, s.q));
  const go = (i: number) => update({ q: Math.max(0, Math.min(site.queries - 1, i)) });
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      const next = Math.max(0, state.value.q) + 1;
      if (next >= site.queries) setPlaying(false);
      else go(next);
    }, calm.matches ? 1500 : 700);
    return () => clearInterval(timer);
  }, [playing, site.queries]);
  const title = `${s.m}: ${siteName[site.id] ?? site.id}, layer ${layer}, head ${head}, step ${step}`;
  // Rows of cross and decoder sites are tokens written; in a model that reads on, step i has read token i and foresees
  // token i + 1. An encoder's rows foresee nothing.
  const written = site.rows === "target";
  const candidates = written || t.tokens.target.length === 0 ? t.candidates?.[step] : undefined;
  useEffect(() => {
    if (!m || m.pool) return;
    exporting.value = {
      title, caption: sentence(),
      svg: () => stepSvg(),
      csv: () => [csvLine(["key", "token", "weight"]), ...m.colLabels.map((label, j) => csvLine([j, label, Number.isNaN(cell(m, step, j)) ? "masked" : shortest(cell(m, step, j))]))].join("\n") + "\n",
    };
  }, [m, step]);
  const forced = s.f ? s.f.split(",").length : 0;
  const force = written && t.written ? (id: number) => update({ f: [...t.written!.slice(0, step), id].join(",") }) : undefined;
  if (!m) return <p>Loading…</p>;
  if (m.pool) return <p class="empty">This input is too long to follow step by step.</p>;
  const table = colorTable("abs");
  const came = written ? m.rowLabels[step] : m.rowLabels[step + 1];
  const sentence = (): string => {
    const p = candidates?.find((c) => c.token === came)?.p;
    const how = p === undefined ? "" : written ? ` with probability ${p.toFixed(4)}` : `, foresaw “${shown(came)}” with probability ${p.toFixed(4)}`;
    return `Step ${step}: ${written ? "wrote" : "read"} “${shown(m.rowLabels[step])}”${how}, looking with an entropy of ${(100 * rowEntropy(m, step)).toFixed(0)} % of the possible.`;
  };
  const stepSvg = (): string => {
    const out = [`<text x="8" y="20" font-weight="bold">${escape(title)}</text>`];
    m.colLabels.forEach((label, j) => {
      const v = cell(m, step, j) || 0;
      out.push(`<text x="112" y="${50 + 18 * j}" text-anchor="end">${escape(shorten(shown(label), 13))}</text><rect x="120" y="${40 + 18 * j}" width="${300 * v}" height="12" fill="${css(table, 0.65)}"/><text x="${126 + 300 * v}" y="${50 + 18 * j}">${v.toFixed(4)}</text>`);
    });
    return svgOf(520, 60 + 18 * m.cols, out.join(""));
  };
  return (
    <div
      class="steps" data-ready="true" tabIndex={0} role="group" aria-label="Decoding, step by step: left and right arrows, Space plays"
      onKeyDown={(e) => {
        if (e.target !== e.currentTarget && e.key === " ") return;
        if (e.key === "ArrowRight") go(step + 1);
        else if (e.key === "ArrowLeft") go(step - 1);
        else if (e.key === "Home") go(0);
        else if (e.key === "End") go(site.queries - 1);
        else if (e.key === " ") setPlaying(!playing);
        else return;
        e.preventDefault();
      }}
    >
      <div class="controls">
        <button type="button" aria-label="Step before" disabled={step === 0} onClick={() => go(step - 1)}>◀</button>
        <button type="button" onClick={() => { if (!playing && step === site.queries - 1) go(0); setPlaying(!playing); }}>{playing ? "Pause" : "Play"}</button>
        <button type="button" aria-label="Next step" disabled={step === site.queries - 1} onClick={() => go(step + 1)}>▶</button>
        <input type="range" aria-label="Step" min={0} max={site.queries - 1} value={step} onInput={(e) => go(Number(e.currentTarget.value))} />
      </div>
      {forced > 0 && (
        <p class="caption" id="forced">
          You chose the first {forced === 1 ? "token" : `${forced} tokens`}; the model wrote the rest. <button type="button" class="chip" onClick={() => update({ f: "" })}>Let it choose</button>
        </p>
      )}
      <p class="timeline">
        {m.rowLabels.slice(0, 200).map((token, i) => (
          <button type="button" class={i === step ? "token here" : i < step ? "token" : "token later"} aria-current={i === step ? "step" : undefined} onClick={() => go(i)}>{shown(token)}</button>
        ))}
      </p>
      <p class="caption" aria-live="polite">{sentence()}</p>
      <p class="tinted" aria-label="Keys tinted by their weight at this step">
        {m.colLabels.slice(0, 300).map((token, j) => {
          const v = cell(m, step, j);
          return Number.isNaN(v)
            ? <span class="masked-token" title="masked">{shown(token)}</span>
            : <span style={{ background: css(table, v), color: inkOn(table, v) }} title={v.toFixed(4)}>{shown(token)}</span>;
        })}
      </p>
      <div class="step-tables">
        <section>
          <h3>Where it looks</h3>
          <Bars rows={top(m.colLabels, (j) => cell(m, step, j))} color={css(table, 0.65)} />
        </section>
        {candidates && (
          <section>
            <h3>{written ? "What might come here" : "What might come next"}</h3>
            <Bars
              rows={[...candidates.map((c): [string, number, boolean] => [c.token, c.p, c.token === came]), ["all others", Math.max(0, 1 - candidates.reduce((a, c) => a + c.p, 0)), false]]} color={css(table, 0.5)}
              onPick={force && ((i) => i < candidates.length && force(candidates[i].id))}
            />
            {force && <p class="caption">Click one to make the model say it here, and see how it goes on.</p>}
          </section>
        )}
      </div>
    </div>
  );
}

function top(labels: string[], value: (j: number) => number): [string, number, boolean][] {
  return labels.map((label, j): [string, number, boolean] => [`${shown(label)} (${j})`, value(j), false]).filter(([, v]) => !Number.isNaN(v)).sort((a, b) => b[1] - a[1]).slice(0, 10);
}

function Bars({ rows, color, onPick }: { rows: [string, number, boolean][]; color: string; onPick?: (row: number) => void }) {
  return (
    <table class="bar-table">
      <tbody>
        {rows.map(([label, v, chosen], i) => (
          <tr class={chosen ? "chosen" : ""}>
            <th>{onPick && i < rows.length - 1 ? <button type="button" class="link" aria-label={`Say “${shown(label)}” here`} onClick={() => onPick(i)}>{shown(label)}</button> : shown(label)}</th>
            <td class="bar-cell"><span class="bar" style={{ width: `${100 * v}%`, background: color }} /></td>
            <td class="n">{v.toFixed(4)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
