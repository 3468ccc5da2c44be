// A training of any task, with the settings that the server leaves open; the new run is the one looked at.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { type ApiError, getJson, type Setting, type TaskInfo } from "../api";
import { useAnswer } from "../hooks";
import { dataSets, runs, start } from "../runs";
import { plain, Select } from "../select";
import { isSite } from "../site/place";
import { update } from "../state";
import { PastedText } from "./pasted_text";

const tasks = signal<TaskInfo[]>([]);
/** The run that was just started: its line in the list takes the focus. */
export const fresh = signal("");

/** Starts a training and looks at it alone. */
export async function begin(order: Promise<string>): Promise<void> {
  const id = await order;
  fresh.value = id;
  update({ view: "train", runs: id, trainingStep: -1 });
}

/** What most people change; the others are a click away. */
const usual =
  "attention model positions epochs train-size generated-size max-length layers heads width hidden lr batch seed".split(
    " ",
  );

interface FieldProps {
  setting: Setting;
  value: string | undefined; // undefined: the task's own
  onChange: (value: string | undefined) => void;
}

/** What may be chosen here: a tab has no SentencePiece. */
const choicesOf = ({ name, choices = [] }: Setting): string[] =>
  isSite && name === "tokenizer" ? choices.filter((c) => c === "word" || c === "char") : choices;

function SettingField({ setting: s, value, onChange }: FieldProps) {
  const id = `new-${s.name}`;
  const now = value ?? s.value;
  const set = (v: string) => onChange(v === s.value || v === "" ? undefined : v);
  const number = s.kind === "integer" || s.kind === "number";
  return (
    <label for={id} class={s.kind === "flag" ? "control flag" : "control"} title={plain(s.help)}>
      {s.kind === "flag" && (
        <input
          id={id}
          type="checkbox"
          checked={now === "true"}
          onChange={() => set(now === "true" ? "false" : "true")}
        />
      )}{" "}
      <span class="name">{s.name}</span>
      {s.kind === "choice" && (
        <Select id={id} value={now} options={choicesOf(s).map((c) => [c, c] as const)} onChange={set} />
      )}
      {(number || s.kind === "text") && (
        <input
          id={id}
          type={number ? "number" : undefined}
          step={s.kind === "integer" ? 1 : "any"}
          min={s.low}
          max={s.high}
          value={now}
          onChange={(e) => set(e.currentTarget.value)}
        />
      )}
      <small>{plain(s.help)}</small>
    </label>
  );
}

interface Order {
  settings: Record<string, string>;
  data: string;
  from: string;
  text: string;
}
const empty: Order = { settings: {}, data: "", from: "", text: "" };

/** What else there is to begin with: data that the server offers, weights of a run of the same task. */
function Sources({ task, order, change }: { task: string; order: Order; change: (o: Partial<Order>) => void }) {
  const earlier = runs.value.filter((r) => r.task === task && !r.error && r.checkpoints.length > 0);
  return (
    <>
      {dataSets.value.length > 0 && (
        <label class="control">
          <span class="name">data</span>
          <Select
            id="new-data"
            value={order.data}
            options={[["", "the task's own"], ...dataSets.value.map((d): [string, string] => [d, d])]}
            onChange={(data) => change({ data })}
          />
        </label>
      )}
      {isSite && task === "text" && <PastedText text={order.text} onChange={(text) => change({ text })} />}
      {!isSite && earlier.length > 0 && (
        <label class="control">
          <span class="name">weights to begin with</span>
          <Select
            id="new-from"
            value={order.from}
            options={[["", "fresh ones"], ...earlier.map((r): [string, string] => [r.id, `those of ${r.id}`])]}
            onChange={(from) => change({ from })}
          />
        </label>
      )}
    </>
  );
}

export function NewTraining() {
  const [open, setOpen] = useState(false);
  const [name, setName] = useState("reverse");
  const [order, setOrder] = useState(empty);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  useAnswer(
    () => open && !tasks.value.length && getJson<{ tasks: TaskInfo[] }>("/api/tasks"),
    [open],
    (answer) => {
      tasks.value = answer.tasks;
    },
    (e) => setProblem(e.message),
  );
  const task = tasks.value.find((t) => t.name === name) ?? tasks.value[0];
  const change = (o: Partial<Order>) => setOrder({ ...order, ...o });
  const field = (s: Setting) => {
    const set = (v: string | undefined) => {
      const { [s.name]: _, ...others } = order.settings;
      change({ settings: v === undefined ? others : { ...others, [s.name]: v } });
    };
    return <SettingField key={`${name} ${s.name}`} setting={s} value={order.settings[s.name]} onChange={set} />;
  };
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    const given = Object.entries({ data: order.data, from: order.from, text: order.text }).filter(([, value]) => value);
    try {
      await begin(start({ task: task.name, settings: order.settings, ...Object.fromEntries(given) }));
      setProblem("");
      setOpen(false);
    } catch (error) {
      setProblem((error as ApiError).message);
    }
    setBusy(false);
  };
  const others = task?.settings.filter((s) => !usual.includes(s.name)) ?? [];
  return (
    <details class="new-training" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary id="new-training">Train a model of your own</summary>
      {task && (
        <form onSubmit={(e) => void submit(e)}>
          <label class="control">
            <span class="name">task</span>
            <Select
              id="new-task"
              value={task.name}
              options={tasks.value.map((t): [string, string] => [t.name, t.name])}
              onChange={(t) => {
                setName(t);
                setOrder(empty);
              }}
            />
            <small>{task.summary}</small>
          </label>
          <Sources task={task.name} order={order} change={change} />
          {usual.flatMap((name) => task.settings.filter((s) => s.name === name)).map(field)}
          {others.length > 0 && (
            <details>
              <summary>{others.length} more settings</summary>
              {others.map(field)}
            </details>
          )}
          <button type="submit" class="primary" id="start-training" disabled={busy}>
            {busy ? "Starting…" : `Train ${task.name}`}
          </button>
        </form>
      )}
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
    </details>
  );
}
