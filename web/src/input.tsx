// What goes in: run, checkpoint, input, examples; and what came out.
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, type Picture, type Run, getJson } from "./api";
import { shorten, shown } from "./matrix";
import { pictureCanvas } from "./picture";
import { current as named, state, update } from "./state";
import { ask, busy, failure, trace } from "./trace";

/** Inputs a run offers, with what they look like where they are pictures. */
interface Examples {
  run: string;
  examples: string[];
  pictures?: Picture[];
}
const none: Examples = { run: "", examples: [] };

export function InputPanel({ runs }: { runs: Run[] }) {
  const s = state.value;
  const [text, setText] = useState(s.x);
  const [given, setGiven] = useState(none);
  const run = runs.find((r) => r.id === s.m);
  const pictures = run?.task === "images" || !!trace.value?.picture;
  const look = (x: string) => (x === s.x ? void ask(true) : update({ x, q: -1 }));
  useEffect(() => setText(s.x), [s.x]);
  useEffect(() => {
    if (!run || run.error || !run.checkpoints.length) return;
    let current = true;
    getJson<Omit<Examples, "run">>(`/api/runs/${encodeURIComponent(run.id)}/examples`)
      .then((a) => current && setGiven({ run: run.id, ...a }))
      .catch((e: ApiError) => current && (failure.value = { message: e.message, field: "model" }));
    return () => {
      current = false;
    };
  }, [s.m, run?.checkpoints.length === 0]);
  const { examples, pictures: seen = [] } = given.run === s.m ? given : none;
  useEffect(() => {
    const now = named();
    if (now.m === given.run && !now.x && given.examples.length) update({ x: given.examples[0] });
  }, [s.m, s.x, given]);
  const problem = failure.value;
  return (
    <aside class="panel input-panel">
      <label>
        Run
        <select id="run" value={s.m} onChange={(e) => update({ m: e.currentTarget.value, c: "", x: "", s: "", l: 0, h: 0, q: -1, tab: "", what: "weights" })}>
          {runs.map((r) => (
            <option value={r.id} disabled={!!r.error || !r.checkpoints.length}>
              {r.id} {r.error ? "(cannot be read)" : !r.checkpoints.length ? "(no checkpoint yet)" : r.id.startsWith(r.task) ? "" : `(${r.task})`}
            </option>
          ))}
        </select>
      </label>
      <label>
        Checkpoint
        <select id="checkpoint" value={s.c} onChange={(e) => update({ c: e.currentTarget.value })}>
          <option value="">{trace.value && s.c === "" ? `the run's choice (${/^\d/.test(trace.value.checkpoint) ? `step ${trace.value.checkpoint}` : trace.value.checkpoint})` : "the run's choice"}</option>
          {[...(run?.checkpoints ?? [])].reverse().map((c) => <option value={String(c)}>step {c}</option>)}
        </select>
      </label>
      {problem?.field === "model" && <Problem message={problem.message} />}
      <form
        onSubmit={(e) => {
          e.preventDefault();
          look(text);
        }}
      >
        <label>
          Input
          <textarea
            id="input" rows={Math.max(2, Math.min(6, Math.ceil(text.length / 28)))} value={text.startsWith("data:") ? "(a drawn or chosen picture)" : text} spellcheck={false} aria-invalid={problem?.field === "input"}
            onInput={(e) => setText(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key === "Enter" && !e.shiftKey) {
                e.preventDefault();
                look(e.currentTarget.value);
              }
            }}
          />
        </label>
        {problem && problem.field !== "model" && <Problem message={problem.message} />}
        <button type="submit" class="primary" disabled={!text || busy.value}>{busy.value ? "Working…" : "Look"}</button>
      </form>
      {trace.value && (
        <p class="output">
          Output <output id="output">{shown(trace.value.output)}</output>
        </p>
      )}
      {pictures && <Pad onPicture={(x) => update({ x, q: -1 })} />}
      {examples.length > 0 && (
        <div class="examples">
          <span>Examples</span>
          {examples.map((x, i) => (
            <button type="button" class={seen[i] ? "chip shot" : "chip"} aria-label={x} aria-pressed={x === s.x} title={x} onClick={() => look(x)}>
              {seen[i] ? <img alt="" width={48} height={48} src={pictureCanvas(seen[i]).toDataURL()} /> : shorten(x, 60)}
            </button>
          ))}
        </div>
      )}
    </aside>
  );
}

function Problem({ message }: { message: string }) {
  return (
    <p class="error" role="alert">
      {message} <button type="button" class="chip" onClick={() => void ask(true)}>Retry</button>
    </p>
  );
}

const padSize = 28;

/** Draw a picture, or choose a file; both become a PNG of the size the model's own pictures have. */
function Pad({ onPicture }: { onPicture: (dataUrl: string) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawing = useRef(false);
  const clear = () => {
    const c = canvas.current!.getContext("2d")!;
    c.fillStyle = "#000";
    c.fillRect(0, 0, padSize, padSize);
  };
  useEffect(clear, []);
  const dab = (e: PointerEvent) => {
    if (!drawing.current) return;
    const r = canvas.current!.getBoundingClientRect(), c = canvas.current!.getContext("2d")!;
    c.fillStyle = "#fff";
    c.beginPath();
    c.arc(((e.clientX - r.left) / r.width) * padSize, ((e.clientY - r.top) / r.height) * padSize, 1.4, 0, 2 * Math.PI);
    c.fill();
  };
  const choose = async (file: File | undefined) => {
    if (!file) return;
    const image = await createImageBitmap(file);
    const out = document.createElement("canvas");
    out.width = trace.value?.picture?.width ?? padSize;
    out.height = trace.value?.picture?.height ?? padSize;
    out.getContext("2d")!.drawImage(image, 0, 0, out.width, out.height);
    onPicture(out.toDataURL("image/png"));
  };
  return (
    <div class="pad">
      <canvas
        ref={canvas} width={padSize} height={padSize} aria-label="Drawing pad"
        onPointerDown={(e) => {
          drawing.current = true;
          canvas.current!.setPointerCapture(e.pointerId);
          dab(e);
        }}
        onPointerMove={dab} onPointerUp={() => (drawing.current = false)}
      />
      <span>
        <button type="button" onClick={() => onPicture(canvas.current!.toDataURL("image/png"))}>Look at the drawing</button>
        <button type="button" onClick={clear}>Clear</button>
        <label class="file">
          or a file <input type="file" accept="image/*" onChange={(e) => void choose(e.currentTarget.files?.[0])} />
        </label>
      </span>
    </div>
  );
}
