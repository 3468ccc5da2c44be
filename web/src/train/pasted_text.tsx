// A text to learn: pasted, chosen or dropped; it stays in this tab and becomes a part of the run.
import { useState } from "preact/hooks";

const mostMegabytes = 8;

/** The text of a file. Throws a sentence. */
async function textOf(file: File): Promise<string> {
  if (file.size > mostMegabytes * 1e6) throw new Error(`${file.name} is larger than ${mostMegabytes} MB`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not a text in UTF-8`);
  }
}

export function PastedText({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const [problem, setProblem] = useState("");
  const take = async (file: File | undefined) => {
    if (!file) return;
    try {
      onChange(await textOf(file));
      setProblem("");
    } catch (e) {
      setProblem((e as Error).message);
    }
  };
  const drop = (e: DragEvent) => {
    e.preventDefault();
    e.stopPropagation(); // elsewhere a dropped file is a run
    void take(e.dataTransfer?.files[0]);
  };
  return (
    <label class="control" for="new-text" onDrop={drop}>
      <span class="name">text</span>
      <textarea
        id="new-text"
        rows={4}
        value={text}
        spellcheck={false}
        placeholder="empty: generated sentences"
        onInput={(e) => onChange(e.currentTarget.value)}
      />
      <input
        type="file"
        id="new-text-file"
        aria-label="Choose a text file"
        accept="text/*,.txt,.md"
        onChange={(e) => void take(e.currentTarget.files?.[0])}
      />
      <small>paste it, drop a file here or choose one; it leaves this device only inside a run you download</small>
      {problem && (
        <span class="error" role="alert">
          {problem}
        </span>
      )}
    </label>
  );
}
