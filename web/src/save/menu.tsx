// The menu that saves the current view, or copies the link that restores it.
import { useRef, useState } from "preact/hooks";
import { exporting, type FileKind, saveAs } from "./files";

const kinds: [FileKind, string][] = [
  ["svg", "Picture (SVG)"],
  ["png", "Picture (PNG)"],
  ["csv", "Numbers (CSV)"],
  ["html", "Page to send (HTML)"],
];

export function SaveMenu() {
  const box = useRef<HTMLDetailsElement>(null);
  const [said, say] = useState("");
  const close = () => {
    if (box.current) box.current.open = false;
  };
  const done = (what: string) => {
    say(what);
    close();
    setTimeout(() => say(""), 3000);
  };
  const link = () =>
    navigator.clipboard.writeText(location.href).then(
      () => done("link copied"),
      () => done("copy the address bar"),
    );
  const what = exporting.value;
  const save = (kind: FileKind) => {
    if (what)
      saveAs(kind, what).then(
        () => done("saved"),
        (e: Error) => done(e.message),
      );
  };
  return (
    <>
      <span class="said" role="status">
        {said}
      </span>
      <details class="menu" ref={box} onKeyDown={(e) => e.key === "Escape" && close()}>
        <summary role="button">Save</summary>
        <div>
          {kinds.map(([kind, name]) => (
            <button type="button" id={`save-${kind}`} disabled={!what} onClick={() => save(kind)}>
              {name}
            </button>
          ))}
          <button type="button" id="copy-link" onClick={() => void link()}>
            Copy link
          </button>
        </div>
      </details>
    </>
  );
}
