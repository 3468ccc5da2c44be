// The runs that can be compared, and a button that starts one.
import { type ApiError, type Run, remove } from "../api";
import { seriesColor } from "../colors";
import { readOnly, startSmall } from "../runs";
import { update } from "../state";
import { failure } from "./records";

/** Each run keeps its colour as others come and go: it is given by the order in which the page first saw it. */
const order: string[] = [];
export function colorOf(id: string): string {
  if (!order.includes(id)) order.push(id);
  return seriesColor(order.indexOf(id));
}

/** Runs a request; its error message appears below the list. */
async function attempt(what: Promise<void>): Promise<void> {
  try {
    await what;
    failure.value = "";
  } catch (e) {
    failure.value = (e as ApiError).message;
  }
}

const set = (ids: string[]) => update({ runs: ids.length ? ids.join(",") : "-" });

function RunItem({ run, chosen }: { run: Run; chosen: string[] }) {
  const others = chosen.filter((id) => id !== run.id);
  const on = others.length < chosen.length;
  const stop = () => void attempt(remove(`/api/runs/${encodeURIComponent(run.id)}`));
  return (
    <div class="run">
      <label>
        <input
          type="checkbox"
          disabled={!!run.error}
          checked={on}
          onChange={() => set(on ? others : [...chosen, run.id])}
        />
        <span class="swatch" style={{ background: colorOf(run.id) }} /> {run.id}
      </label>
      {!run.error && (
        <button type="button" class="chip" onClick={() => set([run.id])}>
          only
        </button>
      )}
      {run.training && <em>training</em>}
      {run.training && !readOnly.value && (
        <button type="button" class="chip" onClick={stop}>
          stop
        </button>
      )}
      {run.error && <span class="error">{run.error}</span>}
    </div>
  );
}

export function RunList({ runs, chosen }: { runs: Run[]; chosen: string[] }) {
  return (
    <aside class="panel">
      <h2>Runs</h2>
      <p class="caption">Choose the runs to compare; each keeps its colour.</p>
      {runs.map((r) => (
        <RunItem run={r} chosen={chosen} />
      ))}
      {!readOnly.value && (
        <button type="button" class="primary" onClick={() => void attempt(startSmall())}>
          Train a small reversal model
        </button>
      )}
      <p class="caption">
        {readOnly.value ? "More runs are trained on the server's machine" : "or on the command line"}:{" "}
        <code>qkv train reverse</code>
      </p>
      {failure.value && (
        <p class="error" role="alert">
          {failure.value}
        </p>
      )}
    </aside>
  );
}
