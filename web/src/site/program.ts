// The program in a worker of this tab: started when it is first called, and again after it has failed.
import type { Answer, Call, Reply, Start } from "./messages";
import { filesInside, workerScript } from "./place";

interface Waiting {
  take: (answer: Answer) => void;
  fail: (error: Error) => void;
}

export class Program {
  private worker: Worker | null = null;
  private readonly waiting = new Map<number, Waiting>();
  private calls = 0;

  /**
   * `runs` as in Start; `begun` is called after each start, before anything else is asked, `failed` when the worker is
   * of no more use, with the reason.
   */
  constructor(
    private readonly runs?: string,
    private readonly begun: () => void = () => {},
    private readonly failed: (reason: string) => void = () => {},
  ) {}

  /** Starts the worker unless it runs. */
  begin(): void {
    if (!this.worker) this.start();
  }

  /** The answer of a function of the program, whatever its status. Rejects when the worker failed. */
  call(name: string, ...values: Call["values"]): Promise<Answer> {
    const worker = this.worker ?? this.start();
    const id = ++this.calls;
    return new Promise((take, fail) => {
      this.waiting.set(id, { take, fail });
      worker.postMessage({ id, name, values } satisfies Call);
    });
  }

  /** The same as bytes; an error's sentence where there is no good answer. */
  async bytes(name: string, ...values: Call["values"]): Promise<ArrayBuffer> {
    const { status, body } = await this.call(name, ...values);
    if (status >= 400) throw new Error(JSON.parse(new TextDecoder().decode(body)).error);
    return body;
  }
  async json<T>(name: string, ...values: Call["values"]): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(name, ...values)));
  }

  /** Ends the worker; what was asked of it fails with this reason, and the next call starts another. */
  end(reason: string): void {
    this.worker?.terminate();
    this.worker = null;
    const left = [...this.waiting.values()];
    this.waiting.clear();
    for (const { fail } of left) fail(new Error(reason));
  }

  private start(): Worker {
    const worker = new Worker(workerScript());
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      if ("trouble" in data) {
        const reason = `The program in this tab failed and was started again: ${data.trouble}.`;
        this.end(reason);
        return this.failed(reason);
      }
      this.waiting.get(data.id)?.take(data);
      this.waiting.delete(data.id);
    };
    worker.onerror = (e) =>
      this.end(`The program in this tab could not be started: ${e.message || "worker.js was not loaded"}.`);
    const inside = filesInside((name) => name === "qkv.wasm" || (this.runs !== undefined && name !== "worker.js"));
    worker.postMessage({ base: new URL(".", location.href).href, inside, runs: this.runs } satisfies Start);
    this.begun();
    return worker;
  }
}
