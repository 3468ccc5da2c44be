// The page: three views over one server.
import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, type Run, getJson } from "./api";
import { chosenTheme, isDark, setTheme, systemDark } from "./colors";
import { Explore } from "./explore";
import { type FileKind, exporting, saveAs } from "./export";
import { Lab } from "./lab";
import { notice, state, update } from "./state";
import { ask, failure } from "./trace";
import { Train, startSmall } from "./train";
import "./style.css";

const runs = signal<Run[]>([]);
const root = signal("runs");
const loaded = signal(false);
const gone = signal("");

async function refresh(): Promise<void> {
  try {
    const answer = await getJson<{ root: string; runs: Run[] }>("/api/runs");
    if (JSON.stringify(answer.runs) !== JSON.stringify(runs.value)) runs.value = answer.runs;
    root.value = answer.root;
    loaded.value = true;
    if (gone.value && failure.value) void ask(true);
    gone.value = "";
  } catch (e) {
    gone.value = (e as ApiError).message;
  }
}

const views = { explore: "Explore", train: "Train", lab: "Lab" } as const;

function Help({ close }: { close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.focus(), []);
  return (
    <dialog open class="help" aria-label="Help" ref={box} tabIndex={-1} onKeyDown={(e) => e.key === "Escape" && close()}>
      <h2>Reading a map</h2>
      <p>Rows are queries, columns keys. Darker cells (in the dark theme: brighter ones) have more weight; hatched cells are masked; an empty cell has a weight of 0.</p>
      <h2>Keys</h2>
      <p>A map is one stop of the Tab key. While it has the focus:</p>
      <dl>
        <dt>arrows</dt><dd>move the cursor (Shift: ten cells)</dd>
        <dt>Home, End</dt><dd>first, last key</dd>
        <dt>m</dt><dd>the row's largest weight</dd>
        <dt>Enter, Esc</dt><dd>pin the row, let go</dd>
        <dt>[ ]</dt><dd>head before, after</dd>
        <dt>{"{ }"}</dt><dd>layer before, after</dd>
        <dt>+ − 0</dt><dd>larger, smaller, fit</dd>
        <dt>Space</dt><dd>plays the steps</dd>
        <dt>?</dt><dd>this help</dd>
      </dl>
      <button type="button" onClick={close}>Close</button>
    </dialog>
  );
}

/** Saves what one sees; the link restores it. */
function SaveMenu() {
  const box = useRef<HTMLDetailsElement>(null);
  const [said, say] = useState("");
  const kinds: [FileKind, string][] = [["svg", "Picture (SVG)"], ["png", "Picture (PNG)"], ["csv", "Numbers (CSV)"], ["html", "Page to send (HTML)"]];
  const done = (what: string) => {
    say(what);
    if (box.current) box.current.open = false;
    setTimeout(() => say(""), 3000);
  };
  const link = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      done("link copied");
    } catch {
      done("copy the address bar");
    }
  };
  const e = exporting.value;
  return (
    <>
      <span class="said" role="status">{said}</span>
      <details class="menu" ref={box} onKeyDown={(k) => k.key === "Escape" && box.current && (box.current.open = false)}>
        <summary role="button">Save</summary>
        <div>
          {kinds.map(([kind, name]) => (
            <button type="button" id={`save-${kind}`} disabled={!e} onClick={() => e && saveAs(kind, e).then(() => done("saved"), (x: Error) => done(x.message))}>{name}</button>
          ))}
          <button type="button" id="copy-link" onClick={() => void link()}>Copy link</button>
        </div>
      </details>
    </>
  );
}

function Empty() {
  const [error, setError] = useState("");
  const start = () => startSmall().then(() => { void refresh(); update({ view: "train" }); }, (e: ApiError) => setError(e.message));
  const broken = runs.value.filter((r) => r.error);
  return (
    <main class="welcome">
      <h1>No trained model here yet</h1>
      <p>This page shows where attention models look. Train a small one, which takes some seconds, and watch it learn to write letters backwards:</p>
      <button type="button" class="primary" id="train-small" onClick={() => void start()}>Train a small reversal model</button>{" "}
      <button type="button" onClick={() => update({ view: "lab" })}>Go to the lab</button>
      {error && <p class="error" role="alert">{error}</p>}
      <p>Or on the command line; runs below <code>{root.value}/</code> appear here by themselves:</p>
      <pre>qkv train reverse</pre>
      <p>The lab needs no model: experiments on what attention can and cannot do, each with its formula.</p>
      {broken.length > 0 && <><h2>Runs that cannot be read</h2><ul>{broken.map((r) => <li class="error">{r.error}</li>)}</ul></>}
    </main>
  );
}

function App() {
  const [help, setHelp] = useState(false);
  useEffect(() => {
    void refresh();
    const timer = setInterval(() => !document.hidden && void refresh(), gone.value ? 1500 : 4000);
    return () => clearInterval(timer);
  }, [gone.value]);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const typing = e.target instanceof HTMLElement && /^(input|textarea|select)$/i.test(e.target.tagName);
      if (e.key === "?" && !typing) setHelp((h) => !h);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  }, [chosenTheme.value, systemDark.value]);
  const { view } = state.value;
  useEffect(() => {
    exporting.value = null;
    document.title = `qkv: ${views[view].toLowerCase()}`;
  }, [view]);
  const usable = runs.value.some((r) => !r.error && r.checkpoints.length > 0);
  return (
    <>
      <header>
        <span class="brand">qkv</span>
        <nav aria-label="Views">
          {(Object.keys(views) as (keyof typeof views)[]).map((v) => (
            <button type="button" id={`view-${v}`} aria-current={view === v ? "page" : undefined} onClick={() => update({ view: v })}>{views[v]}</button>
          ))}
        </nav>
        <span class="right">
          <SaveMenu />
          <button type="button" id="theme" aria-label={isDark() ? "Light colours" : "Dark colours"} onClick={() => setTheme(isDark() ? "light" : "dark")}>{isDark() ? "☀" : "☾"}</button>
          <button type="button" aria-label="Help" onClick={() => setHelp(!help)}>?</button>
        </span>
      </header>
      {gone.value && <p class="banner" role="alert" id="gone">{gone.value} What was loaded stays; the page goes on when the server is back.</p>}
      {notice.value && <p class="banner notice">{notice.value} <button type="button" class="chip" onClick={() => (notice.value = "")}>ok</button></p>}
      {help && <Help close={() => setHelp(false)} />}
      {view === "lab" ? <Lab /> : !loaded.value ? <main /> : view === "train" && runs.value.length ? <Train runs={runs.value} refresh={() => void refresh()} /> : usable ? <Explore runs={runs.value} /> : runs.value.some((r) => r.training) ? <Train runs={runs.value} refresh={() => void refresh()} /> : <Empty />}
    </>
  );
}

render(<App />, document.getElementById("app")!);
