// A whole Transformer block of a tiny model, step by step: every matrix with all its numbers, beside those it came from.
import { useEffect, useState } from "preact/hooks";
import { type ApiError, type Experiment, getJson, query } from "../api";
import { colorTable, css, inkOn } from "../colors";
import { touch } from "../device";
import { useAnswer } from "../hooks";
import type { Matrix } from "../map/matrix";
import { csv } from "../save/csv";
import { exporting } from "../save/files";
import { mapSvg } from "../save/map_svg";
import { state, update } from "../state";
import { Formula } from "./formula";

interface BlockStep {
  name: string;
  formula: string; // "" = given
  note: string;
  given: boolean;
  rows: string; // letter of the rows' labels, "" = none
  shape: [number, number];
  values: (number | null)[][]; // null = −∞, a hidden score
}
interface Block {
  title: string;
  steps: BlockStep[];
}

/** The block among the lab's experiments; its numbers come from a route of its own. */
export const blockExperiment: Experiment = {
  name: "block",
  summary: "a whole Transformer block of a tiny model, every number step by step",
  settings: [
    {
      name: "norm",
      value: "post",
      help: "after each part, as the original, or before it",
      kind: "choice",
      choices: ["post", "pre"],
    },
    { name: "causal", value: "false", help: "a token sees itself and those before it only", kind: "flag" },
  ],
};

const digits = (v: number | null, given: boolean): string => {
  if (v === null) return "−∞";
  return (given ? String(v) : v.toFixed(4)).replace("-", "−");
};

/** The matrices a formula names, as they stood when it was computed; Q_1 is head 1's part of Q. */
function operands(steps: BlockStep[], at: number): BlockStep[] {
  const earlier = steps.slice(0, at).reverse();
  const named = (name: string) => earlier.find((s) => s.name === name);
  const found = new Set<BlockStep>();
  for (const [name] of steps[at].formula.matchAll(/\p{L}+(_[A-Z0-9])?/gu)) {
    const step = named(name) ?? named(name.replace(/_.*/, ""));
    if (step) found.add(step);
  }
  return [...found];
}

function MatrixTable({ step }: { step: BlockStep }) {
  const table = colorTable("centered");
  const reach = step.values.flat().reduce<number>((a, v) => Math.max(a, Math.abs(v ?? 0)), 0) || 1;
  const cell = (v: number | null) => {
    const shade = 0.5 + (v ?? 0) / (2 * reach);
    return (
      <td
        class={v === null ? "n masked-token" : "n"}
        style={v === null ? {} : { background: css(table, shade), color: inkOn(table, shade) }}
      >
        {digits(v, step.given)}
      </td>
    );
  };
  return (
    <div class="scroll">
      <table class="matrix">
        <caption>
          <Formula text={step.name} /> <span class="n">{step.shape.join(" × ")}</span>
        </caption>
        <tbody>
          {step.values.map((row, i) => (
            <tr>
              {step.rows && (
                <th scope="row">
                  <Formula text={`${step.rows}_${i + 1}`} />
                </th>
              )}
              {row.map(cell)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const matrixOf = (s: BlockStep): Matrix => ({
  rows: s.shape[0],
  cols: s.shape[1],
  values: Float32Array.from(s.values.flat(), (v) => v ?? Number.NaN),
  rowLabels: s.values.map((_, i) => `${s.rows}${i + 1}`),
  colLabels: Array.from({ length: s.shape[1] }, (_, j) => String(j + 1)),
  rowTitle: "row",
  colTitle: "column",
});

const blockCsv = (b: Block): string =>
  csv([
    ["step", "name", "formula", "row", "column", "value"],
    ...b.steps.flatMap((s, k) =>
      s.values.flatMap((row, i) => row.map((v, j) => [k + 1, s.name, s.formula, i + 1, j + 1, v ?? "-inf"])),
    ),
  ]);

function useBlock(settings: URLSearchParams, fail: (e: ApiError) => void): Block | null {
  const [held, hold] = useState<{ key: string; block: Block } | null>(null);
  const key = query({ norm: settings.get("norm") ?? "post", causal: settings.get("causal") ?? "false" });
  useAnswer(
    () => getJson<Block>(`/api/explain/block?${key}`),
    [key],
    (block) => hold({ key, block }),
    fail,
  );
  return held?.key === key ? held.block : null;
}

export function BlockView({ fail }: { fail: (e: ApiError) => void }) {
  const settings = new URLSearchParams(state.value.settings);
  const block = useBlock(settings, fail);
  const last = (block?.steps.length ?? 1) - 1;
  const at = Math.max(0, Math.min(last, Number(settings.get("step") ?? 1) - 1 || 0));
  const go = (i: number) => {
    settings.set("step", String(Math.max(0, Math.min(last, i)) + 1));
    update({ experiment: "block", settings: settings.toString() });
  };
  useEffect(() => {
    if (!block) return;
    const s = block.steps[at];
    const title = `${block.title}: ${s.name}${s.formula ? ` = ${s.formula}` : ""}`;
    exporting.value = {
      title,
      caption: s.note,
      svg: (bare) => mapSvg(bare ? "" : title, matrixOf(s), "centered", bare ? "" : s.note),
      csv: () => blockCsv(block),
    };
  }, [block, at]);
  if (!block) return <p class="empty">Loading…</p>;
  const press = (e: KeyboardEvent) => {
    if (e.key === "ArrowRight") go(at + 1);
    else if (e.key === "ArrowLeft") go(at - 1);
    else return;
    e.preventDefault();
  };
  return (
    <div
      class="block"
      tabIndex={0}
      role="group"
      aria-label={`Steps of the block${touch ? "" : ": left and right arrows"}`}
      data-step={at + 1}
      onKeyDown={press}
    >
      <h2 class="claim">{block.title}</h2>
      <div class="controls">
        <button type="button" aria-label="Step before" disabled={at === 0} onClick={() => go(at - 1)}>
          ◀
        </button>
        <button type="button" aria-label="Next step" disabled={at === last} onClick={() => go(at + 1)}>
          ▶
        </button>
        <span>
          step {at + 1} of {last + 1}
        </span>
      </div>
      <p class="timeline">
        {block.steps.map((s, i) => (
          <button
            type="button"
            class={i === at ? "token here" : s.given ? "token later" : "token"}
            aria-current={i === at ? "step" : undefined}
            onClick={() => go(i)}
          >
            <Formula text={s.name} />
          </button>
        ))}
      </p>
      <Step steps={block.steps} at={at} />
      <details>
        <summary>Every step with all its numbers</summary>
        {block.steps.map((_, i) => (
          <Step steps={block.steps} at={i} alone />
        ))}
      </details>
    </div>
  );
}

/** One step with the matrices it was computed from, or alone. */
function Step({ steps, at, alone = false }: { steps: BlockStep[]; at: number; alone?: boolean }) {
  const s = steps[at];
  const from = alone ? [] : operands(steps, at);
  return (
    <section class="block-step" aria-live={alone ? undefined : "polite"}>
      <h3>
        {at + 1}. <Formula text={s.formula ? `${s.name} = ${s.formula}` : s.name} />
      </h3>
      {s.note && <p class="caption">{s.note}</p>}
      <MatrixTable step={s} />
      {from.length > 0 && (
        <>
          <p class="caption">computed from</p>
          <div class="map-grid">
            {from.map((o) => (
              <MatrixTable step={o} />
            ))}
          </div>
        </>
      )}
    </section>
  );
}
