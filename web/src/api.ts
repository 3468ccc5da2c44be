// The server's answers, typed; an error carries the server's own sentence.

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
  checkpoints: number[];
  error?: string;
  training: boolean;
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
}

export interface Trace {
  id: string;
  output: string;
  tokens: { source: string[]; target: string[] };
  sites: Site[];
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
  predicted: number;
  measured: number;
  kind: string;
  standard_error: number;
  agrees: boolean;
}

export interface LabResult {
  claim: string;
  formula: string;
  rows: LabRow[];
  notes: string[];
  figures: string[];
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

async function request(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new ApiError(0, "the server does not answer; is it still running?");
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

export async function postJson<T>(path: string, body: unknown): Promise<T> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
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
  const shape = (/\(([^)]*)\)/.exec(header)?.[1] ?? "").split(",").filter((s) => s.trim()).map(Number);
  return { shape, values: new Float32Array(bytes, 10 + length) };
}

export const query = (values: Record<string, string | number>): string =>
  new URLSearchParams(Object.entries(values).map(([k, v]) => [k, String(v)])).toString();
