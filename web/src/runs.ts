// The runs the server knows, asked for again and again, and trainings started from here.
import { signal } from "@preact/signals";
import { type ApiError, getJson, postJson, type Run } from "./api";
import { ask, failure } from "./trace";

export const runs = signal<Run[]>([]);
export const root = signal("runs"); // the folder the runs lie in
export const readOnly = signal(false); // the server starts and stops no training for this browser
export const loaded = signal(false);
export const gone = signal(""); // why the server does not answer, "" while it does

export async function refresh(): Promise<void> {
  try {
    const answer = await getJson<{ root: string; read_only: boolean; runs: Run[] }>("/api/runs");
    if (JSON.stringify(answer.runs) !== JSON.stringify(runs.value)) runs.value = answer.runs;
    root.value = answer.root;
    readOnly.value = answer.read_only;
    loaded.value = true;
    if (gone.value && failure.value) void ask(true);
    gone.value = "";
  } catch (e) {
    gone.value = (e as ApiError).message;
  }
}

/** A reversal model that learns in seconds, with many checkpoints to look at. */
export async function startSmall(): Promise<void> {
  const settings = {
    "max-length": 12,
    "train-size": 4000,
    "validation-size": 200,
    epochs: 10,
    "eval-every": 50,
    "checkpoint-every": 50,
    keep: 50,
  };
  await postJson("/api/runs", { task: "reverse", settings });
  void refresh();
}
