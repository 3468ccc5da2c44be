// The answers of the server, or of the program in this tab, typed; an error carries their own sentence.
import { isSite } from "./site/place";
import { ask } from "./site/training";

export interface Setting {
  name: string;
  value: string;
  help: string;
  kind: "integer" | "number" | "text" | "flag" | "choice";
  low?: number;
  high?: number;
  choices?: string[];
}

export interface Run {
  id: string;
  task: string;
  input?: "text" | "question" | "picture"; // what the task reads
  checkpoints: number[];
  error?: string;
  training: boolean;
  recorded?: boolean; // its model is not here: it answers for the inputs that were recorded
  settings: Setting[];
  group?: string; // the comparison or study it belongs to
}

/** A task that can be trained, with the settings that are open to the page. */
export interface TaskInfo {
  name: string;
  summary: string;
  settings: Setting[];
}

export interface Site {
  id: string;
  layers: number;
  heads: number;
  queries: number;
  keys: number;
  causal: boolean;
  rows: "source" | "target";
  columns: "source" | "target";
  scores: boolean; // whether queries and keys are behind the weights
}

/** A picture the model saw; its patches are tokens, from number first_patch on. */
export interface Picture {
  width: number;
  height: number;
  channels: number;
  pixels: string; // base64 of height x width x channels bytes
  patch_rows: number;
  patch_columns: number;
  first_patch: number;
}

export interface Candidate {
  token: string;
  p: number;
  id: number;
}

export interface Trace {
  id: string;
  checkpoint: string;
  output: string;
  tokens: { source: string[]; target: string[] };
  sites: Site[];
  candidates?: Candidate[][];
  model: string; // the run and the input that were asked for, put here by the page
  input: string;
  written?: number[]; // ids of the tokens written, where the output's beginning may be chosen
  first_written?: number; // where they begin: among the target tokens, or among the source's where there are none
  notice?: string; // what a reader must know: the input was cut
  samples?: boolean; // tokens may be drawn
  picture?: Picture;
}

/** How one query met one key, from the vectors to the weight. */
export interface CellNumbers {
  query: number[];
  key: number[];
  score_weight: number[]; // w of wᵀ tanh(q + k); empty for products
  terms: number[]; // dimension by dimension
  product: number; // their sum
  scale: number;
  softcap: number; // 0 = none
  raw: number;
  capped: number;
  bias: number | null; // null = masked
  score: number | null;
  largest: number | null; // score of the row
  exponential: number; // of score - largest
  total: number; // of the row's exponentials
  normaliser: string;
  weight: number;
  value: number[];
  contribution: number[]; // weight times value
  output: number[]; // of the head, for this query
}

export type Figures = Record<"entropy" | "distance" | "largest" | "self" | "first", number[][]>;

export type MetricRecord = Record<string, unknown>;

export interface Metrics {
  next: number;
  more?: boolean;
  records: MetricRecord[];
  checkpoints: number[];
  training: boolean;
}

export interface LabRow {
  at: string;
  quantity: string;
  predicted: number | null;
  measured: number | null;
  difference: number | null;
  kind: string;
  standard_error?: number;
  agrees: boolean;
}

export interface LabAxis {
  title: string;
  log: boolean;
  low: number | null;
  high: number | null;
}

export interface LabPlot {
  type: "plot";
  title: string;
  caption: string;
  x: LabAxis;
  y: LabAxis;
  series: {
    name: string;
    x: number[];
    y: (number | null)[];
    low: number[];
    high: number[];
    line: boolean;
    dots: boolean;
    dashed: boolean;
    color: number;
  }[];
  guides: { at: number; label: string; vertical: boolean }[];
}

export interface LabMap {
  title: string;
  row_title: string;
  column_title: string;
  rows: number;
  columns: number;
  values: (number | null)[];
  hidden: number[];
  row_labels: string[];
  column_labels: string[];
  centered: boolean;
  low: number;
  high: number;
}

export interface LabMaps {
  type: "maps";
  title: string;
  caption: string;
  columns: number;
  maps: LabMap[];
}

export interface LabResult {
  claim: string;
  formula_markup: string;
  rows: LabRow[];
  notes: string[];
  agrees: boolean;
  pictures: (LabPlot | LabMaps)[];
}

export interface Experiment {
  name: string;
  summary: string;
  settings: Setting[];
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly field = "",
  ) {
    super(message);
  }
}

const wait = (ms: number) => new Promise((go) => setTimeout(go, ms));

/** A busy server (503) is asked again, three times, each time a little later. */
async function request(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  for (let turn = 0; ; turn++) {
    try {
      response = await (isSite ? ask : fetch)(path, init);
    } catch (e) {
      if ((e as Error).name === "AbortError") throw e;
      throw new ApiError(0, isSite ? (e as Error).message : "The server does not answer; is it still running?");
    }
    if (response.status !== 503 || turn === 3) break;
    await wait(500 * (turn + 1));
  }
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new ApiError(response.status, body.error ?? `the server answered ${response.status}`, body.field);
  }
  return response;
}

export async function getJson<T>(path: string): Promise<T> {
  return (await request(path)).json();
}

export async function postJson<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
  return (await request(path, init)).json();
}

export async function remove(path: string): Promise<void> {
  await request(path, { method: "DELETE" });
}

/** A float32 .npy array: its data begin at a multiple of 64 bytes, so no copy is made. */
export async function getArray(path: string): Promise<{ shape: number[]; values: Float32Array }> {
  const bytes = await (await request(path)).arrayBuffer();
  const length = new DataView(bytes).getUint16(8, true);
  const header = new TextDecoder("latin1").decode(new Uint8Array(bytes, 10, length));
  const shape = (/\(([^)]*)\)/.exec(header)?.[1] ?? "")
    .split(",")
    .filter((s) => s.trim())
    .map(Number);
  return { shape, values: new Float32Array(bytes, 10 + length) };
}

export const query = (values: Record<string, string | number>): string =>
  new URLSearchParams(Object.entries(values).map(([k, v]) => [k, String(v)])).toString();
