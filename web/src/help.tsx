// The help: how to read a map, and the keys.
import { useEffect, useRef } from "preact/hooks";
import { touch } from "./device";

const keys: [string, string][] = [
  ["arrows", "move the cursor (Shift: ten cells)"],
  ["Home, End", "first, last key"],
  ["m", "the row's largest weight"],
  ["Enter, Esc", "pin the row, let go"],
  ["[ ]", "head before, after"],
  ["{ }", "layer before, after"],
  ["+ − 0", "larger, smaller, fit"],
  ["Space", "plays the steps"],
  ["?", "this help"],
];

function Keys() {
  return (
    <>
      <h2>Keys</h2>
      <p>A map is one stop of the Tab key. While it has the focus:</p>
      <dl>
        {keys.map(([key, what]) => (
          <>
            <dt>{key}</dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
    </>
  );
}

export function Help({ close }: { close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.focus(), []);
  const press = (e: KeyboardEvent) => {
    if (e.key === "Escape") close();
  };
  return (
    <dialog open class="help" aria-label="Help" ref={box} tabIndex={-1} onKeyDown={press}>
      <h2>Reading a map</h2>
      <p>
        Rows are queries, columns keys. Darker cells (in the dark theme: brighter ones) have more weight; the legend
        says which weight the last colour stands for. Hatched cells are masked; an empty cell has a weight of 0.
      </p>
      {touch ? <p>Touch a cell to see its number and its row; drag to see the rest of a large map.</p> : <Keys />}
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}
