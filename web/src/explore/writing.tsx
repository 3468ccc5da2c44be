// How a language model continues: drawn or the likeliest tokens, how many, from which seed.
import { narrow } from "../device";
import { state, update } from "../state";
import { busy, trace } from "../trace";

const step = 24; // tokens that the server writes unless told otherwise, and that "Continue" adds

interface NumberProps {
  id: string;
  name: string;
  help: string;
  value: number;
  low: number;
  high: number;
  by: number;
  onChange: (v: number) => void;
}

function NumberField({ id, name, help, value, low, high, by, onChange }: NumberProps) {
  const take = (text: string) => {
    const v = Number(text);
    if (text.trim() && Number.isFinite(v)) onChange(Math.max(low, Math.min(high, v)));
  };
  return (
    <label title={help}>
      {name}
      <input
        id={id}
        type="number"
        min={low}
        max={high}
        step={by}
        value={value}
        onChange={(e) => take(e.currentTarget.value)}
      />
    </label>
  );
}

export function Writing() {
  const { temperature, topK, topP, seed, length, beginning } = state.value;
  const written = trace.value?.written?.length ?? 0;
  const drawn = temperature > 0;
  return (
    <details class="writing" open={!narrow}>
      <summary>Writing</summary>
      <div class="fields">
        <label class="wide" title="0 always takes the likeliest token; 1 draws as the model says; more is wilder">
          temperature {temperature === 0 ? "0: always the likeliest" : temperature}
          <input
            id="temperature"
            type="range"
            min={0}
            max={2}
            step={0.1}
            value={temperature}
            onChange={(e) => update({ temperature: Number(e.currentTarget.value) })}
          />
        </label>
        {drawn && (
          <>
            <NumberField
              id="top-k"
              name="top-k (0: all)"
              help="draw from the k likeliest tokens only"
              value={topK}
              low={0}
              high={100000}
              by={1}
              onChange={(v) => update({ topK: Math.round(v) })}
            />
            <NumberField
              id="top-p"
              name="top-p"
              help="draw from the fewest tokens whose probabilities reach p together"
              value={topP}
              low={0.01}
              high={1}
              by={0.05}
              onChange={(v) => update({ topP: Number(v.toFixed(4)) })}
            />
            <NumberField
              id="seed"
              name="seed"
              help="the same seed draws the same text"
              value={seed}
              low={0}
              high={999999999}
              by={1}
              onChange={(v) => update({ seed: Math.round(v) })}
            />
          </>
        )}
        <NumberField
          id="length"
          name="tokens"
          help="how many tokens are written"
          value={length || step}
          low={1}
          high={1024}
          by={1}
          onChange={(v) => update({ length: Math.round(v) })}
        />
        <div class="wide buttons">
          <button
            type="button"
            id="continue"
            disabled={busy.value || written >= 1024}
            onClick={() => update({ length: Math.min(1024, Math.max(written, length || step) + step) })}
          >
            Continue
          </button>
          {beginning && (
            <button type="button" onClick={() => update({ beginning: "" })}>
              Let it choose again
            </button>
          )}
        </div>
      </div>
    </details>
  );
}
