// Formulas in text: x_{i}, v_a and e^{t_{j}} become sub- and superscripts; everything else stays as it is.
import type { JSX } from "preact";

/** The index after the brace that closes the one at `open`. */
function closing(text: string, open: number): number {
  let end = open + 1;
  for (let depth = 1; end < text.length && depth > 0; end++) {
    if (text[end] === "{") depth++;
    if (text[end] === "}") depth--;
  }
  return end;
}

export function Formula({ text }: { text: string }): JSX.Element {
  const begin = /[_^]\{|(?<=[A-Za-zα-ωΑ-Ω])_[A-Za-z0-9](?![A-Za-z0-9])/.exec(text);
  if (!begin) return <>{text}</>;
  const at = begin.index;
  const braced = text[at + 1] === "{";
  const end = braced ? closing(text, at + 1) : at + 2;
  const inner = <Formula text={braced ? text.slice(at + 2, end - 1) : text[at + 1]} />;
  return (
    <>
      {text.slice(0, at)}
      {text[at] === "_" ? <sub>{inner}</sub> : <sup>{inner}</sup>}
      <Formula text={text.slice(end)} />
    </>
  );
}
