// The small reversal model that the page's button trains.
import { readFileSync } from "node:fs";

/** Its order, with the settings that the page's source has. */
export function smallOrder() {
  const source = readFileSync(new URL("../../web/src/runs.ts", import.meta.url), "utf8");
  const found = /startSmall[\s\S]*?const settings = \{([\s\S]*?)\}/.exec(source)[1];
  const settings = [...found.matchAll(/"?([\w-]+)"?: (\d+)/g)].map(([, name, value]) => [name, Number(value)]);
  return { task: "reverse", settings: Object.fromEntries(settings) };
}
