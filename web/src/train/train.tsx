// Train: curves of running and finished trainings, compared in one plot, and an example's map on the way.
import { useMemo } from "preact/hooks";
import type { Run } from "../api";
import { Select } from "../select";
import { state, update } from "../state";
import { metricsOf } from "./curves";
import { CurvesView } from "./curves_view";
import { curves, recordsOf, useRecords } from "./records";
import { RunList } from "./run_list";
import { Scrubber } from "./scrubber";

function chosenRuns(runs: Run[]): string[] {
  const named = state.value.runs;
  if (named === "-") return [];
  const wanted = named ? named.split(",") : runs.slice(0, 8).map((r) => r.id);
  return wanted.filter((id) => runs.some((r) => r.id === id && !r.error));
}

/** The metric the state names, else a loss. */
function chosenMetric(metrics: string[]): string | undefined {
  const { metric } = state.value;
  if (metrics.includes(metric)) return metric;
  return metrics.find((k) => k === "validation loss") ?? metrics.find((k) => k.endsWith("loss")) ?? metrics[0];
}

export function Train({ runs }: { runs: Run[] }) {
  const chosen = chosenRuns(runs);
  useRecords(chosen);
  const metrics = useMemo(
    () => [...new Set(chosen.flatMap((id) => metricsOf(recordsOf(id))))],
    [curves.value, chosen.join()],
  );
  const metric = chosenMetric(metrics);
  const withMap = runs.filter((r) => chosen.includes(r.id) && r.checkpoints.length > 0);
  const scrubbed = withMap.find((r) => r.id === chosen[0]) ?? withMap[0];
  const showExample = (id: string) =>
    update({ runs: [id, ...chosen.filter((x) => x !== id)].join(","), trainingStep: -1 });
  return (
    <main class="train">
      <RunList runs={runs} chosen={chosen} />
      <section class={scrubbed ? "picture two" : "picture"}>
        {metric ? (
          <CurvesView chosen={chosen} metrics={metrics} metric={metric} mark={scrubbed} />
        ) : (
          <p class="empty">No figures yet. They appear here as soon as a training writes them.</p>
        )}
        {scrubbed && (
          <div>
            {chosen.length > 1 && (
              <label class="which">
                Example of{" "}
                <Select
                  label="Run of the example"
                  value={scrubbed.id}
                  options={chosen.map((id) => [id, id] as const)}
                  onChange={showExample}
                />
              </label>
            )}
            <Scrubber run={scrubbed} key={scrubbed.id} />
          </div>
        )}
      </section>
    </main>
  );
}
