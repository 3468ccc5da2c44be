// What this browser keeps of the runs trained in it: their files, in a database named after the site's path.
import { sitePath } from "./place";

/** A file of a run; null removes it. */
export interface StoredFile {
  name: string;
  bytes: ArrayBuffer | null;
}

const database = `qkv ${sitePath}`;
const files = "files"; // [run, name] → bytes
const marks = "marks"; // run → "training" while it is being trained

let opened: Promise<IDBDatabase> | null = null;

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((take, fail) => {
    request.onsuccess = () => take(request.result);
    request.onerror = () => fail(request.error);
  });
}

function open(): Promise<IDBDatabase> {
  opened ??= new Promise((take, fail) => {
    const request = indexedDB.open(database, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(files);
      request.result.createObjectStore(marks);
    };
    request.onsuccess = () => take(request.result);
    request.onerror = () => fail(request.error);
  });
  return opened;
}

/** Writes files of a run and its mark in one transaction: all of it is kept, or nothing. */
export async function keep(run: string, changes: StoredFile[], training: boolean): Promise<void> {
  const db = await open();
  const transaction = db.transaction([files, marks], "readwrite");
  const whole = new Promise<void>((take, fail) => {
    transaction.oncomplete = () => take();
    transaction.onabort = transaction.onerror = () => fail(transaction.error);
  });
  const store = transaction.objectStore(files);
  for (const { name, bytes } of changes) {
    if (bytes) store.put(bytes, [run, name]);
    else store.delete([run, name]);
  }
  if (training) transaction.objectStore(marks).put("training", run);
  else transaction.objectStore(marks).delete(run);
  await whole;
}

/** The runs that are kept. */
export async function keptRuns(): Promise<Set<string>> {
  const keys = await done((await open()).transaction(files).objectStore(files).getAllKeys());
  return new Set((keys as [string, string][]).map(([run]) => run));
}

/** Every kept file of every run, and the runs whose training was cut short. */
export async function kept(): Promise<{ files: { run: string; name: string; bytes: ArrayBuffer }[]; cut: string[] }> {
  const db = await open();
  const transaction = db.transaction([files, marks]);
  const store = transaction.objectStore(files);
  const [keys, values, cut] = await Promise.all([
    done(store.getAllKeys()),
    done(store.getAll()),
    done(transaction.objectStore(marks).getAllKeys()),
  ]);
  const list = (keys as [string, string][]).map(([run, name], i) => ({ run, name, bytes: values[i] as ArrayBuffer }));
  return { files: list, cut: cut as string[] };
}
