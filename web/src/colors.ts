// Colours: a map of equal lightness steps for weights, a diverging one for lift, eight for heads and runs.
import { signal } from "@preact/signals";

type Rgb = [number, number, number];

const media = matchMedia("(prefers-color-scheme: dark)");
/** "" follows the system. */
export const chosenTheme = signal(localStorage.getItem("theme") ?? "");
export const systemDark = signal(media.matches);
media.addEventListener("change", (e) => (systemDark.value = e.matches));
export const isDark = (): boolean => (chosenTheme.value ? chosenTheme.value === "dark" : systemDark.value);

export function setTheme(theme: string): void {
  chosenTheme.value = theme;
  if (theme) localStorage.setItem("theme", theme);
  else localStorage.removeItem("theme");
}

/** What canvases and exports draw with; the style sheet has the same values. */
export const inks = () =>
  isDark()
    ? { ink: "#e6e8ec", soft: "#a3abb6", background: "#14161a", grid: "#2b2f36", strong: "#ffb454", hatch: "#4a4f58" }
    : { ink: "#1b1f24", soft: "#57606a", background: "#ffffff", grid: "#e3e7ec", strong: "#b1450b", hatch: "#c3cad3" };

const light = ["382597", "f85912", "612431", "a585b8", "cd7969", "6b7dfc", "94330a", "5d406f"];
const dark = ["af7687", "5973f9", "de5b24", "d7f1ac", "4ef3fe", "9c84d6", "faca35", "df806e"];
export const seriesColor = (i: number): string => `#${(isDark() ? dark : light)[i % 8]}`;

// Stops chosen so that lightness (CIE L*) falls or rises evenly: order survives in grey.
const stops: Record<string, Rgb[]> = {
  light: [[255, 255, 255], [219, 229, 243], [176, 200, 230], [131, 170, 214], [89, 138, 194], [55, 105, 170], [32, 72, 138], [18, 40, 96], [8, 12, 48]],
  dark: [[16, 18, 22], [38, 36, 52], [62, 54, 84], [93, 73, 108], [129, 95, 118], [167, 122, 120], [202, 155, 123], [230, 195, 141], [250, 240, 200]],
  lift: [[20, 70, 140], [80, 130, 190], [160, 190, 220], [240, 240, 240], [245, 195, 130], [225, 130, 40], [150, 70, 0]],
};

function table(points: Rgb[]): Uint8ClampedArray {
  const out = new Uint8ClampedArray(256 * 4);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (points.length - 1);
    const k = Math.min(points.length - 2, Math.floor(at));
    for (let c = 0; c < 3; c++) out[i * 4 + c] = Math.round(points[k][c] + (points[k + 1][c] - points[k][c]) * (at - k));
    out[i * 4 + 3] = 255;
  }
  return out;
}
const tables = { light: table(stops.light), dark: table(stops.dark), lift: table(stops.lift) };

/** abs 0…1; row by the row's largest; lift against even weights; auto lowest to highest; centered around 0. */
export type Scale = "abs" | "row" | "lift" | "auto" | "centered";
export const colorTable = (scale: Scale): Uint8ClampedArray => (scale === "lift" || scale === "centered" ? tables.lift : isDark() ? tables.dark : tables.light);
/** Where the colour of a shade (0 … 1) begins in a table. */
export const at = (shade: number): number => Math.max(0, Math.min(255, Math.round(shade * 255))) * 4;
export const css = (t: Uint8ClampedArray, shade: number): string => {
  const i = at(shade);
  return `rgb(${t[i]},${t[i + 1]},${t[i + 2]})`;
};
/** Ink that can be read on a shade. */
export const inkOn = (t: Uint8ClampedArray, shade: number): string => {
  const i = at(shade);
  return 0.299 * t[i] + 0.587 * t[i + 1] + 0.114 * t[i + 2] < 140 ? "#ffffff" : "#111111";
};
