// What the page shows before there is a model.
import { useState } from "preact/hooks";
import type { ApiError } from "./api";
import { readOnly, root, runs, startSmall } from "./runs";
import { isSite } from "./site/place";
import { update } from "./state";
import { begin, NewTraining } from "./train/new_training";

export function Welcome() {
  const [error, setError] = useState("");
  const start = () => begin(startSmall()).catch((e: ApiError) => setError(e.message));
  const broken = runs.value.filter((r) => r.error);
  return (
    <main class="welcome">
      <h1>No trained model here yet</h1>
      <p>This page shows where attention models look.</p>
      {!readOnly.value && (
        <>
          <p>Train a small one, which takes some seconds, and watch it learn to write letters backwards:</p>
          <button type="button" class="primary" id="train-small" onClick={() => void start()}>
            Train a small reversal model
          </button>{" "}
        </>
      )}
      <button type="button" onClick={() => update({ view: "lab" })}>
        Go to the lab
      </button>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {!readOnly.value && <NewTraining />}
      {!isSite && (
        <>
          <p>
            On the command line; runs below <code>{root.value}/</code>, at any depth, appear here by themselves:
          </p>
          <pre>qkv train reverse</pre>
        </>
      )}
      <p>The lab needs no model: experiments on what attention can and cannot do, each with its formula.</p>
      {broken.length > 0 && (
        <>
          <h2>Runs that cannot be read</h2>
          <ul>
            {broken.map((r) => (
              <li class="error">{r.error}</li>
            ))}
          </ul>
        </>
      )}
    </main>
  );
}
