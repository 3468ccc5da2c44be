// The page: three views over one server.
import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, type Run, getJson } from "./api";
import { chosenTheme, isDark, setTheme, systemDark } from "./colors";
import { Explore } from "./explore";
import { Lab } from "./lab";
import { notice, state, update } from "./state";
import { Train } from "./train";
import "./style.css";

const runs = signal<Run[]>([]);
const loaded = signal(false);
const gone = signal("");

async function refresh(): Promise<void> {
  try {
    const answer = await getJson<{ runs: Run[] }>("/api/runs");
    if (JSON.stringify(answer.runs) !== JSON.stringify(runs.value)) runs.value = answer.runs;
    loaded.value = true;
    gone.value = "";
  } catch (e) {
    gone.value = (e as ApiError).message;
  }
}

const views = { explore: "Explore", train: "Train", lab: "Lab" } as const;

function Help({ close }: { close: () => void }) {
  return (
    <dialog open class="help" aria-label="Help">
      <h2>Keys</h2>
      <p>A map is one stop of the Tab key. While it has the focus:</p>
      <dl>
        <dt>arrows</dt><dd>move the cursor (Shift: ten cells)</dd>
        <dt>Home, End</dt><dd>first, last key</dd>
        <dt>m</dt><dd>the row's largest weight</dd>
        <dt>Enter, Esc</dt><dd>pin the row, let go</dd>
        <dt>[ ]</dt><dd>head before, after</dd>
        <dt>{"{ }"}</dt><dd>layer before, after</dd>
      </dl>
      <h2>Reading a map</h2>
      <p>Rows are queries, columns keys. Darker (in the dark: brighter) cells have more weight; hatched cells are masked; an empty cell has a weight of 0.</p>
      <button type="button" onClick={close}>Close</button>
    </dialog>
  );
}

function Empty() {
  return (
    <main class="welcome">
      <h1>No trained model here yet</h1>
      <p>Train a small one in the Train view, or on the command line, and it appears here:</p>
      <pre>./run train reverse --out runs/reverse</pre>
      <p>The Lab needs no model: sixteen experiments on what attention can and cannot do.</p>
      <button type="button" onClick={() => update({ view: "train" })}>Train a model</button>{" "}
      <button type="button" onClick={() => update({ view: "lab" })}>Go to the lab</button>
    </main>
  );
}

function App() {
  const [help, setHelp] = useState(false);
  useEffect(() => {
    void refresh();
    const timer = setInterval(() => !document.hidden && void refresh(), 5000);
    const key = (e: KeyboardEvent) => {
      const typing = e.target instanceof HTMLElement && /^(input|textarea|select)$/i.test(e.target.tagName);
      if (e.key === "?" && !typing) setHelp((h) => !h);
    };
    addEventListener("keydown", key);
    return () => {
      clearInterval(timer);
      removeEventListener("keydown", key);
    };
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  }, [chosenTheme.value, systemDark.value]);
  const { view } = state.value;
  const usable = runs.value.some((r) => !r.error && r.checkpoints.length > 0);
  return (
    <>
      <header>
        <span class="brand">qkv</span>
        <nav>
          {(Object.keys(views) as (keyof typeof views)[]).map((v) => (
            <button type="button" aria-current={view === v ? "page" : undefined} onClick={() => update({ view: v })}>{views[v]}</button>
          ))}
        </nav>
        <span class="right">
          <button type="button" aria-label="Light or dark" onClick={() => setTheme(isDark() ? "light" : "dark")}>{isDark() ? "☀" : "☾"}</button>
          <button type="button" aria-label="Help" onClick={() => setHelp(true)}>?</button>
        </span>
      </header>
      {gone.value && <p class="banner" role="alert">{gone.value} What was loaded stays; the page goes on when the server is back.</p>}
      {notice.value && <p class="banner notice">{notice.value} <button type="button" class="chip" onClick={() => (notice.value = "")}>ok</button></p>}
      {help && <Help close={() => setHelp(false)} />}
      {view === "lab" ? <Lab /> : view === "train" ? <Train runs={runs.value} refresh={() => void refresh()} /> : !loaded.value ? <main /> : usable ? <Explore runs={runs.value} /> : <Empty />}
    </>
  );
}

render(<App />, document.getElementById("app")!);
