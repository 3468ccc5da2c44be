// The page: three views over one server.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { chosenTheme, isDark, setTheme, systemDark } from "./colors";
import { Explore } from "./explore/explore";
import { Help } from "./help";
import { Lab } from "./lab/lab";
import { gone, loaded, refresh, runs } from "./runs";
import { exporting } from "./save/files";
import { SaveMenu } from "./save/menu";
import { isSite, keepForOffline } from "./site/place";
import { TryIt } from "./site/try_it";
import { notice, type State, state, update } from "./state";
import { ask, failure } from "./trace";
import { Train } from "./train/train";
import { Welcome } from "./welcome";
import "./style/base.css";
import "./style/explore.css";
import "./style/train_lab.css";
import "./style/screens.css";

const views: Record<State["view"], string> = { explore: "Explore", train: "Train", lab: "Lab" };

/** The chosen view, as far as the runs allow it. */
function View() {
  const { view } = state.value;
  const all = runs.value;
  const usable = all.some((r) => !r.error && r.checkpoints.length > 0);
  const training = all.some((r) => r.training);
  if (view === "lab") return <Lab />;
  if (!loaded.value) return <main />;
  if ((view === "train" && all.length) || (!usable && training)) return <Train runs={all} />;
  return usable ? <Explore runs={all} /> : <Welcome />;
}

function Banners() {
  return (
    <>
      {gone.value && (
        <p class="banner" role="alert" id="gone">
          {gone.value} What was loaded stays{isSite ? "." : "; the page continues when the server is back."}
        </p>
      )}
      {notice.value && (
        <p class="banner notice">
          {notice.value}{" "}
          <button
            type="button"
            class="chip"
            onClick={() => {
              notice.value = "";
            }}
          >
            ok
          </button>
        </p>
      )}
    </>
  );
}

function Bar({ toggleHelp }: { toggleHelp: () => void }) {
  const { view } = state.value;
  return (
    <header>
      <span class="brand">qkv</span>
      <nav aria-label="Views">
        {(Object.keys(views) as State["view"][]).map((v) => (
          <button
            type="button"
            id={`view-${v}`}
            aria-current={view === v ? "page" : undefined}
            onClick={() => update({ view: v })}
          >
            {views[v]}
          </button>
        ))}
      </nav>
      <span class="right">
        <SaveMenu />
        <button
          type="button"
          id="theme"
          aria-label={isDark() ? "Light colours" : "Dark colours"}
          onClick={() => setTheme(isDark() ? "light" : "dark")}
        >
          {isDark() ? "☀" : "☾"}
        </button>
        <button type="button" aria-label="Help" onClick={toggleHelp}>
          ?
        </button>
      </span>
    </header>
  );
}

function App() {
  const [help, setHelp] = useState(false);
  const toggleHelp = () => setHelp((h) => !h);
  useEffect(() => {
    const look = async () => {
      if ((await refresh()) && failure.value) void ask(true);
    };
    void look();
    const timer = setInterval(() => !document.hidden && void look(), gone.value ? 1500 : 4000);
    return () => clearInterval(timer);
  }, [gone.value]);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const typing = e.target instanceof HTMLElement && /^(input|textarea|select)$/i.test(e.target.tagName);
      if (e.key === "?" && !typing) toggleHelp();
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
  return (
    <>
      <Bar toggleHelp={toggleHelp} />
      <Banners />
      {isSite && view === "explore" && <TryIt />}
      {help && <Help close={() => setHelp(false)} />}
      <View />
    </>
  );
}

render(<App />, document.getElementById("app")!);
addEventListener("load", keepForOffline);
