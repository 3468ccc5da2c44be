// Tokens as text that can be read: signs for what cannot be seen, and an ellipsis where room is short.

/** Signs for what cannot be seen. */
export function shown(token: string): string {
  if (token === "") return "∅";
  const visible = token.replace(/\n/g, "⏎").replace(/\t/g, "⇥");
  return visible.replace(/^ +$/g, (spaces) => "␣".repeat(spaces.length));
}

/** What a model wrote, which may be nothing. */
export const shownOutput = (output: string): string => (output ? shown(output) : "(empty)");

/** At most `most` letters, the middle left out. */
export function shorten(text: string, most: number): string {
  const all = Array.from(text);
  if (all.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return `${all.slice(0, most - 1 - tail).join("")}…${tail ? all.slice(-tail).join("") : ""}`;
}
