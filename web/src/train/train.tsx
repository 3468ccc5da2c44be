// Train: curves of running and finished trainings, compared in one plot, and an example's map on the way.
import { useMemo } from "preact/hooks";
import type { Run } from "../api";
import { choicesAre } from "../device";
import { Select } from "../select";
import { state, update } from "../state";
import { metricsOf } from "./curves";
import { CurvesView } from "./curves_view";
import { curves, recordsOf, useRecords } from "./records";
import { RunList } from "./run_list";
import { Scrubber } from "./scrubber";

/** The runs the state names, else those that belong with the first one: of its comparison, or of its task. */
function chosenRuns(runs: Run[]): Run[] {
  const named = state.value.runs;
  const good = runs.filter((r) => !r.error);
  if (named === "-") return [];
  if (named)
    return named
      .split(",")
      .map((id) => good.find((r) => r.id === id))
      .filter((r) => r !== undefined);
  const [first] = good;
  return good.filter((r) => r.task === first.task && (r.group ?? "") === (first.group ?? "")).slice(0, 8);
}

/** The metric the state names, else a loss. */
function chosenMetric(metrics: string[]): string | undefined {
  const { metric } = state.value;
  if (metrics.includes(metric)) return metric;
  return metrics.find((k) => k === "validation loss") ?? metrics.find((k) => k.endsWith("loss")) ?? metrics[0];
}

/** The plot of one task's runs: losses of different tasks have nothing to do with each other. */
function TaskCurves({ list, mark, main }: { list: Run[]; mark: Run | undefined; main: boolean }) {
  const ids = list.map((r) => r.id);
  const metrics = useMemo(
    () => [...new Set(ids.flatMap((id) => metricsOf(recordsOf(id))))],
    [curves.value, ids.join()],
  );
  const metric = chosenMetric(metrics);
  if (!metric) return <p class="empty">No figures of {ids.join(", ")} yet. They appear as the training writes them.</p>;
  const here = mark && ids.includes(mark.id) ? mark : undefined;
  return <CurvesView chosen={list} metrics={metrics} metric={metric} mark={here} main={main} />;
}

export function Train({ runs }: { runs: Run[] }) {
  const chosen = chosenRuns(runs);
  const ids = chosen.map((r) => r.id);
  useRecords(ids);
  const ready = chosen.filter((r) => r.checkpoints.length > 0);
  const attends = (r: Run) => r.settings.every((s) => s.name !== "attention" || s.value !== "none");
  const scrubbed = ready.find((r) => r.id === state.value.model) ?? ready.find(attends) ?? ready[0];
  const showExample = (id: string) => update({ model: id, input: "", checkpoint: "", trainingStep: -1 });
  const tasks = [...new Set(chosen.map((r) => r.task))];
  return (
    <main class="train">
      <RunList runs={runs} chosen={ids} />
      <section class={scrubbed ? "picture two" : "picture"}>
        <div>
          {tasks.length === 0 && <p class="empty">Choose a run {choicesAre}.</p>}
          {tasks.map((task, i) => (
            <TaskCurves key={task} list={chosen.filter((r) => r.task === task)} mark={scrubbed} main={i === 0} />
          ))}
        </div>
        {scrubbed && (
          <div>
            {ids.length > 1 && (
              <label class="which">
                Example of{" "}
                <Select
                  label="Run of the example"
                  value={scrubbed.id}
                  options={ids.map((id) => [id, id] as const)}
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
