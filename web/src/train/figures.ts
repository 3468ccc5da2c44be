// Figures by the names people use, and their values as people write them.
import type { Run } from "../api";

const settingOf = (run: Run | undefined, name: string): number =>
  Number(run?.settings.find((s) => s.name === name)?.value ?? Number.NaN);

/** "validation longer_exact_match" → "exact match, lengths 21 to 40 (validation)". */
export function figureName(metric: string, run?: Run): string {
  const validation = metric.startsWith("validation ");
  let name = (validation ? metric.slice("validation ".length) : metric).replace(/_/g, " ");
  name = name.replace(/\bbleu\b/, "BLEU").replace(/^lr$/, "learning rate");
  if (name.startsWith("longer ")) {
    const trained = settingOf(run, "max-length");
    const lengths = Number.isFinite(trained) ? `lengths ${trained + 1} to ${2 * trained}` : "longer than trained on";
    name = `${name.slice("longer ".length)}, ${lengths}`;
  }
  return validation ? `${name} (validation)` : name;
}

/** Shares as per cent, BLEU with two decimals, the rest with four digits. */
export function figureText(metric: string, value: number): string {
  if (/accuracy|match/.test(metric)) return `${(100 * value).toFixed(1)}%`;
  if (/bleu/.test(metric)) return value.toFixed(2);
  return value.toPrecision(4);
}
