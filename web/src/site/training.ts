// Trainings in this tab: a second worker trains piece by piece, the first one and the browser's storage get its files.
import { signal } from "@preact/signals";
import { notice } from "../state";
import { sitePath } from "./place";
import { Program } from "./program";
import { keep, kept, keptRuns, type StoredFile } from "./storage";
import * as tab from "./tab";
import { beginning, program } from "./tab";

const pieceSeconds = 0.2;

interface News {
  changed: string[];
  removed: string[];
  progress: Progress;
}
export interface Progress {
  step: number;
  steps: number;
  seconds_left: number;
}

/** How far the trainings of this tab are, by run. */
export const progress = signal<Record<string, Progress>>({});
const stopping = new Set<string>();
/** The runs of the browser's storage that this tab has. */
const mine = new Set<string>();

const noStorage =
  "This browser keeps nothing for this page: what is trained here is gone when the tab is closed. Download a run to keep it.";
/** What must be known of the browser's storage, in a sentence. */
export const storageNote = signal("");

/** Keeps files; where the browser refuses, or may clear them later, says so. */
async function keepOrSay(run: string, changes: StoredFile[], training: boolean): Promise<void> {
  mine.add(run);
  try {
    await keep(run, changes, training);
    if (!storageNote.value && !(await navigator.storage?.persist?.().catch(() => false)))
      storageNote.value = "The browser may clear what it keeps for this page: download a run that must last.";
  } catch {
    notice.value = storageNote.value = noStorage;
  }
}

/** Hands files to the program that answers; in one go, so that no request finds half a checkpoint. */
const show = (run: string, changes: StoredFile[]) =>
  Promise.all(changes.map(({ name, bytes }) => program.bytes("qkv_write_file", run, name, bytes)));

/** Trains a run, with its lock held, to its end or until it is told to stop. */
async function train(run: string): Promise<void> {
  const trainer = new Program();
  try {
    await trainer.bytes("qkv_add_run", run, await program.bytes("qkv_pack_run", run));
    await trainer.bytes("qkv_train_begin", run);
    let waiting: StoredFile[] = []; // shown, and kept with the next checkpoint
    for (let more = true; more; ) {
      if (stopping.has(run)) await trainer.bytes("qkv_train_stop");
      const answer = await trainer.call("qkv_train_advance", pieceSeconds);
      const news = JSON.parse(new TextDecoder().decode(answer.body)) as News & { error?: string };
      if (news.error) throw new Error(news.error);
      more = answer.status === 202;
      const changed = news.changed.map(async (name) => ({
        name,
        bytes: await trainer.bytes("qkv_read_file", run, name),
      }));
      const changes = [...(await Promise.all(changed)), ...news.removed.map((name) => ({ name, bytes: null }))];
      const saved = changes.some(({ name }) => name.startsWith("checkpoints/")) || !more;
      waiting = [...waiting.filter((w) => !changes.some((c) => c.name === w.name)), ...changes];
      if (saved) await keepOrSay(run, waiting, more);
      if (saved) waiting = [];
      await show(run, changes);
      progress.value = { ...progress.value, [run]: news.progress };
    }
    await program.bytes("qkv_training_state", run, 0, "");
  } catch (e) {
    await keepOrSay(run, [], false);
    await program.bytes("qkv_training_state", run, 0, (e as Error).message);
  } finally {
    stopping.delete(run);
    trainer.end("the training is over");
    const { [run]: _, ...others } = progress.value;
    progress.value = others;
  }
}

/** A run trains in one tab: whoever holds its lock. Returns whether this one does, and works under it. */
function locked(run: string, work: (run: string) => Promise<void>): Promise<boolean> {
  const alone = () => {
    void work(run);
    return true;
  };
  if (!navigator.locks) return Promise.resolve(alone()); // a host without https: nothing tells tabs from each other
  return new Promise((held) => {
    let answered = false;
    const request = navigator.locks.request(`qkv ${sitePath} ${run}`, { ifAvailable: true }, async (lock) => {
      answered = true;
      held(lock !== null);
      if (lock) await work(run);
    });
    request.catch(() => answered || held(alone())); // a sandboxed frame: it shares nothing with other tabs
  });
}

async function allFiles(run: string): Promise<StoredFile[]> {
  const { files } = await program.json<{ files: string[] }>("qkv_run_files", run);
  return Promise.all(files.map(async (name) => ({ name, bytes: await program.bytes("qkv_read_file", run, name) })));
}

/** What other tabs have kept since, into this one: a new run takes none of their names. */
async function takeKept(): Promise<string[]> {
  const names = [...(await keptRuns())];
  if (names.every((run) => mine.has(run))) return [];
  const { files, cut } = await kept();
  const fresh = files.filter(({ run }) => !mine.has(run));
  for (const { run } of fresh) mine.add(run);
  await Promise.all(fresh.map(({ run, name, bytes }) => program.bytes("qkv_write_file", run, name, bytes)));
  return cut;
}

const taken = (run: string) =>
  program.bytes("qkv_training_state", run, 0, "another tab began a run of this name at the same time; train it again");

/** Keeps a new run, unless another tab was faster with one of that name, and trains it. */
async function trainNew(run: string): Promise<void> {
  const others = await keptRuns().catch(() => new Set());
  if (others.has(run)) return void (await taken(run));
  await keepOrSay(run, await allFiles(run), true);
  await train(run);
}

/** Starts what the routes ordered of the worker that trains. */
async function followOrders(): Promise<void> {
  for (;;) {
    const { order } = await program.json<{ order: string }>("qkv_next_order");
    const [what, run] = order.split(" ", 2);
    if (!what) return;
    if (what === "stop") stopping.add(run);
    if (what !== "train") continue;
    if (!(await locked(run, trainNew))) await taken(run);
  }
}

/** The kept runs into a program that has just begun, and on with what was cut short when a tab was closed. */
beginning.give = async () => {
  mine.clear();
  const cut = await takeKept().catch(() => null);
  if (!cut) {
    notice.value = storageNote.value = noStorage;
    return;
  }
  for (const run of cut) {
    await program.bytes("qkv_training_state", run, 1, "");
    // The program that answers may have been started again under a training.
    if (run in progress.value || (await locked(run, train))) continue;
    await program.bytes("qkv_training_state", run, 0, "");
    notice.value = `Another tab of this browser trains ${run}; here it stays as it was when this page was opened.`;
  }
};

/** A run as a .tar file. */
export const archiveOf = (run: string): Promise<ArrayBuffer> => program.bytes("qkv_pack_run", run);

/** Adds the run of a .tar file and keeps it. Returns its id. */
export async function addArchive(file: File): Promise<string> {
  await takeKept().catch(() => []);
  const { id } = await program.json<{ id: string }>("qkv_add_run", file.name, await file.arrayBuffer());
  await keepOrSay(id, await allFiles(id), false);
  return id;
}

/** fetch() for the routes in this tab, and then what the request ordered of the worker that trains. */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  if (init.method === "POST" && path === "/api/runs") await takeKept().catch(() => []);
  const response = await tab.ask(path, init);
  if (init.method && path.startsWith("/api/runs")) await followOrders();
  return response;
}
