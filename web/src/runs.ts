// The runs the server knows, asked for again and again, and trainings started from here.
import { signal } from "@preact/signals";
import { type ApiError, getJson, postJson, type Run } from "./api";

export const runs = signal<Run[]>([]);
export const root = signal("runs"); // the folder the runs lie in
export const dataSets = signal<string[]>([]); // what trainings may be started on, by name
export const readOnly = signal(false); // the server starts and stops no training for this browser
export const loaded = signal(false);
export const gone = signal(""); // why the server does not answer, "" while it does

/** Returns whether the server is back after it had not answered. */
export async function refresh(): Promise<boolean> {
  try {
    const answer = await getJson<{ root: string; read_only: boolean; data_sets: string[]; runs: Run[] }>("/api/runs");
    if (JSON.stringify(answer.runs) !== JSON.stringify(runs.value)) runs.value = answer.runs;
    root.value = answer.root;
    readOnly.value = answer.read_only;
    if (answer.data_sets.join() !== dataSets.value.join()) dataSets.value = answer.data_sets;
    loaded.value = true;
    const back = gone.value !== "";
    gone.value = "";
    return back;
  } catch (e) {
    gone.value = (e as ApiError).message;
    return false;
  }
}

/** Starts a training and returns its run. */
export async function start(order: object): Promise<string> {
  const { id } = await postJson<{ id: string }>("/api/runs", order);
  await refresh();
  return id;
}

/** A reversal model that learns in seconds, with many checkpoints to look at. */
export function startSmall(): Promise<string> {
  const settings = {
    "max-length": 12,
    "train-size": 4000,
    "validation-size": 200,
    epochs: 10,
    "eval-every": 50,
    "checkpoint-every": 50,
    keep: 50,
  };
  return start({ task: "reverse", settings });
}

/** Runs of a comparison or study together, in the order of the list; group "" stands alone. */
export interface Group {
  group: string;
  members: Run[];
}
export function grouped(all: Run[]): Group[] {
  const groups: Group[] = [];
  for (const run of all) {
    const group = run.group ?? "";
    const known = groups.find((g) => g.group === group);
    if (known) known.members.push(run);
    else groups.push({ group, members: [run] });
  }
  return groups;
}

/** A run's name below the heading of its group. */
export const nameIn = (group: string, id: string): string =>
  group && id.startsWith(`${group}/`) ? id.slice(group.length + 1) : id;
