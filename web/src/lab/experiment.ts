// Asking for experiments: the latest settings win.
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, type LabResult, postJson } from "../api";

interface Held {
  name: string;
  settings: string;
  value: LabResult;
  ms: number;
}

async function measure(name: string, settings: string): Promise<Held> {
  const begin = performance.now();
  const body = { settings: Object.fromEntries(new URLSearchParams(settings)) };
  const value = await postJson<LabResult>(`/api/lab/${name}`, body);
  return { name, settings, value, ms: performance.now() - begin };
}

/** One request at a time, and what changed in the meantime is asked next. */
export function useExperiment(name: string | undefined, settings: string) {
  const [result, setResult] = useState<Held | null>(null);
  const [error, setError] = useState("");
  const wanted = useRef({ name: "", settings: "" });
  const running = useRef(false);
  useEffect(() => {
    if (!name) return;
    wanted.current = { name, settings };
    const run = async () => {
      if (running.current) return;
      running.current = true;
      for (let done: typeof wanted.current | null = null; done !== wanted.current; ) {
        done = wanted.current;
        try {
          setResult(await measure(done.name, done.settings));
          setError("");
        } catch (e) {
          if (done === wanted.current) setError((e as ApiError).message);
        }
      }
      running.current = false;
    };
    void run();
  }, [name, settings]);
  return { result: result?.name === name ? result : null, error, setError };
}
