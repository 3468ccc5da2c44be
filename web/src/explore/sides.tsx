// Two runs on one input, side by side; one without attention shows what it wrote and how sure it was.
import { useMemo, useState } from "preact/hooks";
import type { Trace } from "../api";
import { type Ends, type Matrix, sharedEnds } from "../map/matrix";
import { shownOutput } from "../map/tokens";
import { state, update } from "../state";
import { beside, type Failure, failure, trace } from "../trace";
import { Controls, chosenSite, Look, type Tab } from "./explore";

interface PaneProps {
  run: string;
  t: Trace | null;
  problem: Failure | null;
  tab: Tab;
  onMap: (m: Matrix | null) => void;
  shared: Ends | undefined;
}

function Pane({ run, t, problem, tab, onMap, shared }: PaneProps) {
  return (
    <section class="pane" data-run={run} aria-label={run}>
      <h2>{run}</h2>
      {problem && (
        <p class="error" role="alert">
          {problem.message}
        </p>
      )}
      {t && !problem && (
        <>
          <p class="output">
            Output <output>{shownOutput(t.output)}</output>
          </p>
          {t.notice && <p class="caption">{t.notice}</p>}
          <Look t={t} site={chosenSite(t)} tab={tab} onMap={onMap} shared={shared} />
        </>
      )}
    </section>
  );
}

/** `tab`: how the first run is looked at. */
export function SideBySide({ tab }: { tab: Tab }) {
  const { model, other } = state.value;
  const [left, setLeft] = useState<Matrix | null>(null);
  const [right, setRight] = useState<Matrix | null>(null);
  const shared = useMemo(
    () => (left && right && left.kind === right.kind ? sharedEnds([left, right]) : undefined),
    [left, right],
  );
  const both = [trace.value, beside.trace.value];
  const looked = both.find((t) => t && chosenSite(t));
  const site = looked && chosenSite(looked);
  // Where the first run has no attention, the tabs are those of the second.
  const { tab: named } = state.value;
  const way: Tab = trace.value && chosenSite(trace.value) ? tab : named && named !== "cell" ? (named as Tab) : "map";
  return (
    <section class="picture">
      {looked && site && <Controls t={looked} site={site} tab={way} />}
      <div class="sides">
        <Pane run={model} t={both[0]} problem={failure.value} tab={way} onMap={setLeft} shared={shared} />
        <Pane run={other} t={both[1]} problem={beside.failure.value} tab={way} onMap={setRight} shared={shared} />
      </div>
      <p class="caption">
        Both runs read the same input.{" "}
        <button type="button" class="chip" onClick={() => update({ other: "" })}>
          Show one run
        </button>
      </p>
    </section>
  );
}
