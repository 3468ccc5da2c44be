// Formulas in prose: x_{i}, v_a and e^{t_{j}} become sub- and superscripts, single letters are set as variables, and
// `words` as code; everything else stays as it is.
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

const greek = "α-ωΑ-Ω";
/** Scripts without braces: v_a, P_ij, k_π(i), P_(i+k), e^(−βt), e^entropy. */
const short = new RegExp(
  `(?<=[A-Za-z${greek}′\u0302])_(?:\\(([^()]*)\\)|([${greek}]\\([a-z]\\))|([A-Za-z${greek}0-9]{1,2}))(?![A-Za-z0-9${greek}])` +
    `|(?<=[A-Za-z${greek}0-9)])\\^(?:\\(([^()]*)\\)|([A-Za-z${greek}0-9−]+))`,
);
/** A letter that stands alone, but for the words "a", "A" and "I"; two where one of them is Greek, or where the second
 *  has a script; one after a number where it has a script. */
const variable = new RegExp(
  `(?<![A-Za-z${greek}0-9'’])(?:[b-zB-HJ-Z]|[${greek}]|[a-z][${greek}]|[${greek}][A-Za-z])(?![A-Za-z${greek}'’]|-[a-z])` +
    `|(?<![A-Za-z${greek}0-9'’])[A-Za-z]{2}(?=[_^²³])|(?<=[0-9])[a-z${greek}](?=[_^²³])`,
);

interface Part {
  at: number;
  end: number;
  node: JSX.Element;
  inner?: string; // of a script
}

/** The first match from `from` on; a pattern may look back beyond it. */
function search(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  const sticky = new RegExp(pattern.source, "g");
  sticky.lastIndex = from;
  return sticky.exec(text);
}

function scripted(sign: string, inner: string): JSX.Element {
  const text = inner === "a" ? <i class="variable">a</i> : <Formula text={inner} />;
  return sign === "_" ? <sub>{text}</sub> : <sup>{text}</sup>;
}

function script(text: string, from: number): Part | null {
  const braced = search(/[_^]\{/, text, from);
  const plain = search(short, text, from);
  if (braced && (!plain || braced.index <= plain.index)) {
    const { index } = braced;
    const end = closing(text, index + 1);
    const inner = text.slice(index + 2, end - 1);
    return { at: index, end, inner, node: scripted(text[index], inner) };
  }
  if (!plain) return null;
  const { index } = plain;
  const inner = plain.slice(1).find((g) => g !== undefined) ?? "";
  return { at: index, end: index + plain[0].length, inner, node: scripted(text[index], inner) };
}

function found(match: RegExpExecArray | null, node: (text: string) => JSX.Element): Part | null {
  return match && { at: match.index, end: match.index + match[0].length, node: node(match[0]) };
}

export function Formula({ text }: { text: string }): JSX.Element {
  const out: (JSX.Element | string)[] = [];
  for (let at = 0; at < text.length; ) {
    const parts = [
      found(search(/`[^`]+`/, text, at), (code) => <code>{code.slice(1, -1)}</code>),
      script(text, at),
      found(search(variable, text, at), (letter) => <i class="variable">{letter}</i>),
    ].filter((p) => p !== null);
    const next = parts.reduce<Part | null>((a, b) => (a && a.at <= b.at ? a : b), null);
    out.push(text.slice(at, next?.at));
    if (!next) break;
    out.push(next.node);
    at = next.end;
  }
  return <>{out}</>;
}

const ns = "http://www.w3.org/2000/svg";
/** The same in the texts of a drawing, which knows no sub and sup: smaller letters, moved. */
export function setFormulas(svg: SVGElement): void {
  for (const box of Array.from(svg.querySelectorAll("text, tspan"))) {
    const text = box.textContent ?? "";
    if (box.childElementCount || !script(text, 0)) continue;
    box.textContent = "";
    const add = (content: string, attributes: Record<string, string>) => {
      const span = document.createElementNS(ns, "tspan");
      span.textContent = content;
      for (const [name, value] of Object.entries(attributes)) span.setAttribute(name, value);
      box.append(span);
    };
    let back = {};
    let at = 0;
    for (let part = script(text, 0); part; part = script(text, at)) {
      const down = text[part.at] === "_";
      add(text.slice(at, part.at), back);
      add(part.inner ?? "", { "font-size": "75%", dy: down ? "0.3em" : "-0.45em" });
      back = { dy: down ? "-0.225em" : "0.34em" }; // of the larger letters
      at = part.end;
    }
    add(text.slice(at), back);
  }
}
