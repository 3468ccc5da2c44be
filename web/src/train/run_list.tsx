// The runs that can be compared, those of a comparison or study together, and a way to start one.
import { useEffect, useRef } from "preact/hooks";
import { type ApiError, type Run, remove } from "../api";
import { seriesColor } from "../colors";
import { type Group, grouped, nameIn, readOnly, refresh, startSmall } from "../runs";
import { save } from "../save/files";
import { isSite } from "../site/place";
import { addArchive, archiveOf, progress, storageNote } from "../site/training";
import { update } from "../state";
import { begin, fresh, NewTraining } from "./new_training";
import { failure } from "./records";

/** Each run keeps its colour as others come and go: it is given when the run is first chosen. */
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

/** How long a training of this tab still takes; a server's says so in its terminal. */
function left(id: string): string {
  const known = progress.value[id];
  if (!known?.steps) return "";
  return `, step ${known.step} of ${known.steps}, ${Math.ceil(known.seconds_left)} s left`;
}

const download = async (id: string) => save(`${id}.tar`, new Blob([await archiveOf(id)]));

/** A run that came as a file; dropped onto the page or chosen. */
function AddRun() {
  const add = async (file: File | undefined) => {
    if (!file) return;
    const id = await addArchive(file);
    await refresh();
    update({ view: "train", runs: id, trainingStep: -1 });
  };
  useEffect(() => {
    const over = (e: DragEvent) => e.preventDefault();
    const drop = (e: DragEvent) => {
      e.preventDefault();
      void attempt(add(e.dataTransfer?.files[0]));
    };
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, []);
  return (
    <label class="file">
      Add a run: drop its .tar file here, or choose it{" "}
      <input type="file" id="add-run" accept=".tar" onChange={(e) => void attempt(add(e.currentTarget.files?.[0]))} />
    </label>
  );
}

const set = (ids: string[]) => update({ runs: ids.length ? ids.join(",") : "-" });

/** Puts the focus on the line of a run that was just started. */
function useFocusWhenFresh(id: string) {
  const tick = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (fresh.value !== id) return;
    fresh.value = "";
    tick.current?.focus();
    tick.current?.scrollIntoView({ block: "nearest" });
  }, [fresh.value]);
  return tick;
}

function RunItem({ run, group, chosen }: { run: Run; group: string; chosen: string[] }) {
  const others = chosen.filter((id) => id !== run.id);
  const on = others.length < chosen.length;
  const stop = () => void attempt(remove(`/api/runs/${encodeURIComponent(run.id)}`));
  const tick = useFocusWhenFresh(run.id);
  return (
    <div class="run" data-run={run.id}>
      <label>
        <input
          ref={tick}
          type="checkbox"
          disabled={!!run.error}
          checked={on}
          onChange={() => set(on ? others : [...chosen, run.id])}
        />
        <span class="swatch" style={{ background: on ? colorOf(run.id) : "transparent" }} /> {nameIn(group, run.id)}
      </label>
      {!run.error && (
        <button type="button" class="chip" aria-label={`Show ${run.id} only`} onClick={() => set([run.id])}>
          only
        </button>
      )}
      {run.training && <em>training{left(run.id)}</em>}
      {run.training && !readOnly.value && (
        <button type="button" class="chip" aria-label={`Stop ${run.id}`} onClick={stop}>
          stop
        </button>
      )}
      {isSite && !run.error && run.checkpoints.length > 0 && (
        <button
          type="button"
          class="chip"
          aria-label={`Download ${run.id}`}
          onClick={() => void attempt(download(run.id))}
        >
          download
        </button>
      )}
      {run.error && <span class="error">{run.error}</span>}
    </div>
  );
}

/** Runs of a comparison or study below its name, which opens them as one. */
function GroupItem({ group, members, chosen }: Group & { chosen: string[] }) {
  const items = members.map((r) => <RunItem key={r.id} run={r} group={group} chosen={chosen} />);
  if (!group) return <>{items}</>;
  const good = members.filter((r) => !r.error).map((r) => r.id);
  return (
    <section class="group" aria-label={group}>
      <h3>
        {group}{" "}
        <button type="button" class="chip" aria-label={`Compare the runs of ${group}`} onClick={() => set(good)}>
          compare
        </button>
      </h3>
      {items}
    </section>
  );
}

export function RunList({ runs, chosen }: { runs: Run[]; chosen: string[] }) {
  return (
    <aside class="panel">
      <h2>Runs</h2>
      <p class="caption">Choose the runs to compare; each keeps its colour.</p>
      {grouped(runs).map((g) => (
        <GroupItem key={g.group} {...g} chosen={chosen} />
      ))}
      {!readOnly.value && (
        <>
          <button type="button" class="primary" onClick={() => void attempt(begin(startSmall()))}>
            Train a small reversal model
          </button>
          <NewTraining />
        </>
      )}
      {storageNote.value && (
        <p class="caption" id="storage-note">
          {storageNote.value}
        </p>
      )}
      {isSite ? (
        <AddRun />
      ) : (
        <p class="caption">
          {readOnly.value ? "More runs are trained on the server's machine" : "or on the command line"}:{" "}
          <code>qkv train reverse</code>
        </p>
      )}
      {failure.value && (
        <p class="error" role="alert">
          {failure.value}
        </p>
      )}
    </aside>
  );
}
