// Colours: a map of equal lightness steps for weights, a diverging one for lift, eight for heads and runs.
import { signal } from "@preact/signals";

const media = matchMedia("(prefers-color-scheme: dark)");
/** What this browser keeps for the page; null where it refuses, as in sandboxed frames. */
const storage = (() => {
  try {
    return localStorage;
  } catch {
    return null;
  }
})();
/** "" follows the system. */
export const chosenTheme = signal(storage?.getItem("theme") ?? "");
export const systemDark = signal(media.matches);
media.addEventListener("change", (e) => {
  systemDark.value = e.matches;
});
export const isDark = (): boolean => (chosenTheme.value ? chosenTheme.value === "dark" : systemDark.value);

export function setTheme(theme: string): void {
  chosenTheme.value = theme;
  if (theme) storage?.setItem("theme", theme);
  else storage?.removeItem("theme");
}

/** What canvases and exports draw with; the style sheet has the same values. */
export const inks = () =>
  isDark()
    ? {
        ink: "#e6e8ec",
        soft: "#a3abb6",
        background: "#14161a",
        grid: "#2b2f36",
        strong: "#ffb454",
        hatch: "#4a4f58",
        accent: "#8fb4ff",
      }
    : {
        ink: "#1b1f24",
        soft: "#57606a",
        background: "#ffffff",
        grid: "#e3e7ec",
        strong: "#b1450b",
        hatch: "#c3cad3",
        accent: "#1f4e9c",
      };

const light = ["382597", "f85912", "612431", "a585b8", "cd7969", "6b7dfc", "94330a", "5d406f"];
const dark = ["af7687", "5973f9", "de5b24", "d7f1ac", "4ef3fe", "9c84d6", "faca35", "df806e"];
export const seriesColor = (i: number): string => `#${(isDark() ? dark : light)[i % 8]}`;

// Stops chosen so that lightness (CIE L*) falls or rises evenly: order survives in grey.
const ramps = {
  light: "ffffff dbe5f3 b0c8e6 83aad6 598ac2 3769aa 20488a 122860 080c30",
  dark: "101216 262434 3e3654 5d496c 815f76 a77a78 ca9b7b e6c38d faf0c8",
  lift: "14468c 5082be a0bedc f0f0f0 f5c382 e18228 964600",
};

/** 256 colours between the stops, four bytes each. */
function table(ramp: string): Uint8ClampedArray {
  const points = ramp.split(" ").map((hex) => [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)));
  const out = new Uint8ClampedArray(256 * 4);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (points.length - 1);
    const k = Math.min(points.length - 2, Math.floor(at));
    for (let c = 0; c < 3; c++)
      out[i * 4 + c] = Math.round(points[k][c] + (points[k + 1][c] - points[k][c]) * (at - k));
    out[i * 4 + 3] = 255;
  }
  return out;
}
const tables = { light: table(ramps.light), dark: table(ramps.dark), lift: table(ramps.lift) };

/** largest 0 to the map's largest; abs 0…1; row by the row's largest; lift relative to uniform weights; auto lowest to
 *  highest; centered around 0. */
export type Scale = "largest" | "abs" | "row" | "lift" | "auto" | "centered";
export const colorTable = (scale: Scale): Uint8ClampedArray =>
  scale === "lift" || scale === "centered" ? tables.lift : isDark() ? tables.dark : tables.light;
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
