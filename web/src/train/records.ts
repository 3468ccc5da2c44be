// Records of trainings, fetched as they grow.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type ApiError, getJson, type MetricRecord, type Metrics } from "../api";
import { refresh } from "../runs";

interface Curve {
  next: number;
  records: MetricRecord[];
  training: boolean;
}

export const curves = signal<Record<string, Curve>>({});
export const failure = signal("");

export const recordsOf = (id: string): MetricRecord[] => curves.value[id]?.records ?? [];

async function poll(id: string): Promise<void> {
  for (;;) {
    const known = curves.value[id];
    const from = known?.next ?? 0;
    const answer = await getJson<Metrics>(`/api/runs/${encodeURIComponent(id)}/metrics?from=${from}`);
    const again = answer.next < from; // the run was trained again
    if (answer.records.length || again || answer.training !== known?.training) {
      const records = [...(again ? [] : recordsOf(id)), ...answer.records];
      curves.value = { ...curves.value, [id]: { next: answer.next, records, training: answer.training } };
    }
    if (!answer.more) return;
  }
}

/** Keeps the records of the chosen runs up to date. */
export function useRecords(chosen: string[]): void {
  useEffect(() => {
    let stopped = false;
    let rounds = 0;
    const round = async () => {
      if (document.hidden) return;
      try {
        // Finished runs are asked once; a run trained elsewhere is looked at now and then.
        await Promise.all(chosen.filter((id) => rounds % 4 === 0 || curves.value[id]?.training !== false).map(poll));
        failure.value = "";
      } catch (e) {
        failure.value = (e as ApiError).message;
      }
      rounds++;
      if (!stopped) void refresh();
    };
    void round();
    const timer = setInterval(() => void round(), 1500);
    return () => {
      stopped = true;
      clearInterval(timer);
    };
  }, [chosen.join()]);
}
