// What to try on a first visit to a site, in one sentence, and the way to a model of one's own.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { ApiError, Run } from "../api";
import { press } from "../device";
import { runs, startSmall } from "../runs";
import { state, update } from "../state";
import { begin } from "../train/new_training";
import { sitePath } from "./place";

const name = `qkv tried ${sitePath}`;
function stored(): boolean {
  try {
    return localStorage.getItem(name) !== null;
  } catch {
    return false; // no storage here
  }
}
const tried = signal(stored());

function dismiss(): void {
  tried.value = true;
  try {
    localStorage.setItem(name, "yes");
  } catch {
    // asked again on the next visit
  }
}

function sentence(run: Run): string {
  if (run.recorded) return `Choose an input, then ${press} a cell of the map: it says how that weight came about.`;
  if (run.task === "reverse")
    return "Type some letters and press Run: the model writes them backwards, and the map shows where it looked.";
  if (run.input === "picture")
    return `Draw something or choose a picture, then ${press} a patch to see where it looked.`;
  if (run.task === "translate")
    return "Type a sentence and press Run: the map shows which words each translated word looked at.";
  return "Type how a text begins and press Run: the map shows what each next token looked at.";
}

export function TryIt() {
  const [problem, setProblem] = useState("");
  const run = runs.value.find((r) => r.id === state.value.model);
  if (!run || run.error || tried.value) return null;
  const train = () => {
    dismiss();
    if (run.task !== "reverse") return update({ view: "train" });
    begin(startSmall()).catch((e: ApiError) => setProblem(e.message));
  };
  return (
    <p class="banner try-it" id="try-it">
      <span>{sentence(run)}</span>
      <button type="button" class="primary" id="train-it" onClick={train}>
        Train it yourself
      </button>
      <button type="button" class="chip" aria-label="Hide this line" onClick={dismiss}>
        ok
      </button>
      {problem && (
        <span class="error" role="alert">
          {problem}
        </span>
      )}
    </p>
  );
}
