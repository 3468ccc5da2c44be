// A worker of a site: holds the program compiled to WebAssembly, and calls its functions one after the other.
import type { Answer, Call, Start } from "./messages";

/** What emscripten makes of wasm/binding.cc; its script stands before this one in worker.js. */
interface Program {
  HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
  _free(at: number): void;
  _qkv_exhausted(): number;
  [name: `_qkv_${string}`]: (...values: number[]) => number;
}
declare function createQkv(options: { wasmBinary: ArrayBuffer }): Promise<Program>;

interface Site {
  runs: { id: string; file: string; bytes: number }[];
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Calls a function of the program with texts and bytes copied into its memory, a zero byte after each. */
function call(program: Program, name: string, values: Call["values"]): Answer {
  const blocks: number[] = [];
  const handed = values.flatMap((value) => {
    if (typeof value === "number") return [value];
    if (value === null) return [0, 0];
    const bytes = typeof value === "string" ? encoder.encode(value) : new Uint8Array(value);
    const at = program._malloc(bytes.length + 1);
    if (!at) throw new Error("the browser gives this page no more memory");
    blocks.push(at);
    program.HEAPU8.set(bytes, at);
    program.HEAPU8[at + bytes.length] = 0;
    return typeof value === "string" ? [at] : [at, bytes.length];
  });
  const status = program[`_${name}` as `_qkv_${string}`](...handed);
  for (const at of blocks) program._free(at);
  const text = program._qkv_answer_type();
  const type = decoder.decode(program.HEAPU8.slice(text, program.HEAPU8.indexOf(0, text)));
  const at = program._qkv_answer_body();
  const body = program.HEAPU8.slice(at, at + program._qkv_answer_bytes());
  if (program._qkv_exhausted()) throw new Error(JSON.parse(decoder.decode(body)).error);
  return { status, type, body: body.buffer };
}

/** A file of the site. */
async function load({ base, inside }: Start, name: string): Promise<ArrayBuffer> {
  if (name in inside) return Uint8Array.from(atob(inside[name]), (c) => c.charCodeAt(0)).buffer;
  const response = await fetch(base + name);
  if (!response.ok) throw new Error(`${base + name} could not be loaded: ${response.status}`);
  return response.arrayBuffer();
}

let program: Promise<Program>;
let firstRun: Promise<unknown> = Promise.resolve();
let allRuns: Promise<unknown> = Promise.resolve();

async function addRun(where: Start, { id, file }: Site["runs"][number]): Promise<void> {
  const archive = await load(where, file);
  const { status, body } = call(await program, "qkv_add_run", [id, archive]);
  if (status !== 201) console.warn(`${id}: ${JSON.parse(decoder.decode(body)).error}`);
}

function start(where: Start): void {
  const { runs } = where;
  program = load(where, "qkv.wasm").then((wasmBinary) => createQkv({ wasmBinary }));
  if (runs !== undefined) {
    const site = load(where, "site.json").then((bytes) => JSON.parse(decoder.decode(bytes)) as Site);
    // The run that the link names comes first; the others follow while it is looked at.
    const order = site.then((s) => [...s.runs].sort((a, b) => Number(b.id === runs) - Number(a.id === runs)));
    firstRun = order.then(([first]) => first && addRun(where, first));
    allRuns = Promise.all([order, firstRun]).then(async ([list]) => {
      for (const run of list.slice(1)) await addRun(where, run);
    });
  }
  for (const part of [program, firstRun, allRuns]) part.catch(() => {}); // said to whoever asks
}

/** The lab needs no run; whatever asks for a run that is not there yet waits for it. */
async function handle({ name, values }: Call): Promise<Answer> {
  const into = await program;
  if (name !== "qkv_answer" || /^\/api\/(lab|explain|tasks)\b/.test(String(values[1]))) return call(into, name, values);
  await (values[0] === "GET" ? firstRun : allRuns); // a new run takes no name of the site's runs
  const answer = call(into, name, values);
  if (answer.status !== 404) return answer;
  await allRuns;
  return call(into, name, values);
}

addEventListener("message", async ({ data }: MessageEvent<Start | Call>) => {
  if ("base" in data) return start(data);
  try {
    const answer = await handle(data);
    postMessage({ id: data.id, ...answer }, { transfer: [answer.body] });
  } catch (e) {
    postMessage({ id: data.id, trouble: e instanceof Error ? e.message : String(e) });
  }
});
