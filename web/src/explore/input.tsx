// What goes in: run, checkpoint, input, examples; and what came out.
import { useEffect, useState } from "preact/hooks";
import { getJson, type Picture, type Run } from "../api";
import { narrow } from "../device";
import { useAnswer } from "../hooks";
import { shorten, shownOutput } from "../map/tokens";
import { grouped, nameIn } from "../runs";
import { Select } from "../select";
import { current, state, update } from "../state";
import { ask, busy, failure, trace } from "../trace";
import { Pad } from "./pad";
import { pictureCanvas } from "./picture_draw";
import { Writing } from "./writing";

/** Inputs a run offers, with what they look like where they are pictures. */
interface Examples {
  run: string;
  examples: string[];
  pictures?: Picture[];
}
const none: Examples = { run: "", examples: [] };

/** Traces an input; the one that is already there is asked for again. */
function look(input: string): void {
  if (input === state.value.input) void ask(true);
  else update({ input, query: -1 });
}

/** The examples of a run; the first one becomes the input where there is none. */
function useExamples(run: Run | undefined): Examples {
  const { model, input } = state.value;
  const [given, setGiven] = useState(none);
  useAnswer(
    () =>
      run &&
      !run.error &&
      run.checkpoints.length > 0 &&
      getJson<Omit<Examples, "run">>(`/api/runs/${encodeURIComponent(run.id)}/examples`),
    [model, run?.checkpoints.length === 0],
    (answer) => setGiven({ run: model, ...answer }),
    (e) => {
      failure.value = { message: e.message, field: "model" };
    },
  );
  useEffect(() => {
    const now = current();
    if (now.model === given.run && !now.input && given.examples.length) update({ input: given.examples[0] });
  }, [model, input, given]);
  return given.run === model ? given : none;
}

function runNote(r: Run): string {
  if (r.error) return "(cannot be read)";
  if (!r.checkpoints.length) return "(no checkpoint yet)";
  return r.id.startsWith(r.task) ? "" : `(${r.task})`;
}

/** Runs as options of a menu; those of a comparison or study stand below its name. */
function RunOptions({ runs }: { runs: Run[] }) {
  return (
    <>
      {grouped(runs).map(({ group, members }) => {
        const options = members.map((r) => (
          <option value={r.id} disabled={!!r.error || !r.checkpoints.length}>
            {nameIn(group, r.id)} {runNote(r)}
          </option>
        ));
        return group ? <optgroup label={group}>{options}</optgroup> : options;
      })}
    </>
  );
}

/** A second run on the same input, of those that read the same. */
function OtherChoice({ runs, run }: { runs: Run[]; run: Run | undefined }) {
  const possible = runs.filter(
    (r) =>
      r.id !== run?.id && r.task === run?.task && !r.error && (r.checkpoints.length > 0 || r.id === state.value.other),
  );
  if (!possible.length) return null;
  return (
    <label>
      Beside it
      <select id="other" value={state.value.other} onChange={(e) => update({ other: e.currentTarget.value })}>
        <option value="">no other run</option>
        <RunOptions runs={possible} />
      </select>
    </label>
  );
}

function RunChoice({ runs }: { runs: Run[] }) {
  const fresh = {
    checkpoint: "",
    input: "",
    other: "",
    temperature: 0,
    length: 0,
    site: "",
    layer: 0,
    head: 0,
    query: -1,
    tab: "",
    what: "weights",
  } as const;
  const change = (e: Event & { currentTarget: HTMLSelectElement }) =>
    update({ ...fresh, model: e.currentTarget.value });
  return (
    <label>
      Run
      <select id="run" value={state.value.model} onChange={change}>
        <RunOptions runs={runs} />
      </select>
    </label>
  );
}

function CheckpointChoice({ run }: { run: Run | undefined }) {
  const { checkpoint } = state.value;
  const taken = trace.value?.checkpoint;
  const step = taken && /^\d/.test(taken) ? `step ${taken}` : taken;
  const kind = taken === "average" ? "average" : run?.training ? "newest" : "best";
  const standard = step && step !== kind && checkpoint === "" ? `${kind} (${step})` : kind;
  const others = [...(run?.checkpoints ?? [])].reverse().map((c): [string, string] => [String(c), `step ${c}`]);
  return (
    <label>
      Checkpoint
      <Select
        id="checkpoint"
        value={checkpoint}
        options={[["", standard], ...others]}
        onChange={(c) => update({ checkpoint: c })}
      />
    </label>
  );
}

function Problem({ message }: { message: string }) {
  return (
    <p class="error" role="alert">
      {message}{" "}
      <button type="button" class="chip" onClick={() => void ask(true)}>
        Retry
      </button>
    </p>
  );
}

function InputForm() {
  const { input } = state.value;
  const [text, setText] = useState(input);
  useEffect(() => setText(input), [input]);
  const problem = failure.value?.field === "model" ? null : failure.value;
  const submit = (e: Event) => {
    e.preventDefault();
    look(text);
  };
  return (
    <form onSubmit={submit}>
      <label>
        Input
        <textarea
          id="input"
          rows={narrow ? 2 : Math.max(2, Math.min(6, Math.ceil(text.length / 28)))}
          value={text.startsWith("data:") ? "(a drawn or chosen picture)" : text}
          spellcheck={false}
          aria-invalid={problem?.field === "input"}
          onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key !== "Enter" || e.shiftKey) return;
            e.preventDefault();
            look(e.currentTarget.value);
          }}
        />
      </label>
      {problem && <Problem message={problem.message} />}
      <button type="submit" class="primary" disabled={!text || busy.value}>
        {busy.value ? "Working…" : "Run"}
      </button>
    </form>
  );
}

/** In place of the form, where only what was recorded can be shown. */
function RecordedNote() {
  const problem = failure.value?.field === "model" ? null : failure.value;
  return (
    <>
      <p class="caption" id="recorded">
        Recorded: this model is not here. Its maps and figures are computed from the queries and keys it had for the
        inputs below.
      </p>
      {problem && <Problem message={problem.message} />}
    </>
  );
}

function ExampleList({ examples, pictures = [], label }: Examples & { label: string }) {
  if (!examples.length) return null;
  const picture = (p: Picture) => <img alt="" width={48} height={48} src={pictureCanvas(p).toDataURL()} />;
  return (
    <div class="examples">
      <span>{label}</span>
      {examples.map((x, i) => (
        <button
          type="button"
          class={pictures[i] ? "chip shot" : "chip"}
          aria-label={x}
          aria-pressed={x === state.value.input}
          title={x}
          onClick={() => look(x)}
        >
          {pictures[i] ? picture(pictures[i]) : shorten(x, 60)}
        </button>
      ))}
    </div>
  );
}

export function InputPanel({ runs }: { runs: Run[] }) {
  const run = runs.find((r) => r.id === state.value.model);
  const given = useExamples(run);
  const problem = failure.value;
  return (
    <aside class="panel input-panel">
      <RunChoice runs={runs} />
      {!run?.recorded && <CheckpointChoice run={run} />}
      <OtherChoice runs={runs} run={run} />
      {problem?.field === "model" && <Problem message={problem.message} />}
      {run?.recorded ? <RecordedNote /> : <InputForm />}
      {trace.value && (
        <p class="output">
          Output <output id="output">{shownOutput(trace.value.output)}</output>
        </p>
      )}
      {trace.value?.notice && (
        <p class="caption notice" id="notice" role="status">
          {trace.value.notice}
        </p>
      )}
      {trace.value?.samples && <Writing />}
      {run?.input === "picture" && !run.recorded && <Pad onPicture={(input) => update({ input, query: -1 })} />}
      <ExampleList {...given} label={run?.recorded ? "Recorded inputs" : "Examples"} />
    </aside>
  );
}
