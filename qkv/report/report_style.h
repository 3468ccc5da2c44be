// The style sheet of reports: phone to wall, light and dark, paper.
#pragma once

namespace qkv {

inline constexpr const char* kReportStyle = R"css(:root {
  color-scheme: light dark;
  --paper: #ffffff; --raised: #f5f6f9; --ink: #1b1f27; --muted: #5c6370; --line: #dfe3ea; --accent: #1f4e9c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14161a; --raised: #1e2127; --ink: #e8eaee; --muted: #a3abb8; --line: #333842; --accent: #8db4f5;
  }
  /* Figures are drawn for white paper: they are turned over with their hues kept, photographs are not. Their ground
     becomes black, and black light added to the page leaves the page's own ground. */
  figure:not(.photographs) svg { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; }
  figure.photographs > .scroll { background: #ffffff; }
}
* { box-sizing: border-box; }
html { font-size: clamp(16px, 0.62vw + 9px, 26px); scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 64rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
header { border-bottom: 3px solid var(--accent); margin-bottom: 1.5rem; padding-bottom: 1rem; }
h1 { font-size: clamp(1.5rem, 4vw, 2.3rem); line-height: 1.2; margin: 0; letter-spacing: -0.01em; text-wrap: balance; }
.subtitle { color: var(--muted); font-size: 1.1rem; margin: 0.5rem 0 0; }
h2 { font-size: 1.45rem; line-height: 1.3; margin: 3rem 0 0.75rem; letter-spacing: -0.005em; }
h3 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
p, li { max-width: 44rem; overflow-wrap: anywhere; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
nav { background: var(--raised); border-radius: 10px; padding: 0.9rem 1.2rem; margin: 0 0 1.5rem; }
nav ol { margin: 0; padding-left: 1.3rem; columns: 16rem; column-gap: 2rem; }
nav li { break-inside: avoid; }
.formula {
  font-family: ui-serif, Georgia, "DejaVu Serif", serif; background: var(--raised); max-width: 56rem;
  border-left: 4px solid var(--accent); border-radius: 0 8px 8px 0; padding: 0.6rem 1rem; white-space: pre-wrap;
  overflow-wrap: anywhere; margin: 0.5rem 0;
}
sub, sup { font-size: 0.75em; line-height: 0; }
pre { background: var(--raised); border-radius: 8px; padding: 0.9rem 1rem; overflow-x: auto; line-height: 1.45; }
code { font: 0.9rem ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.95rem; min-width: min(100%, 20rem); }
caption { text-align: left; color: var(--muted); padding: 0 0 0.4rem; }
th, td { padding: 0.4rem 0.9rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; border-bottom: 2px solid var(--muted); white-space: nowrap; }
tbody tr:nth-child(even) { background: color-mix(in srgb, var(--raised) 60%, transparent); }
.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.settings {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); gap: 0 2rem; margin: 1rem 0;
}
.settings div {
  display: flex; justify-content: space-between; gap: 1rem; border-bottom: 1px solid var(--line); padding: 0.3rem 0;
}
.settings dt { color: var(--muted); }
.settings dd { margin: 0; font-variant-numeric: tabular-nums; text-align: right; overflow-wrap: anywhere; }
.highlights {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 11rem), 1fr)); gap: 1rem; margin: 1.5rem 0;
}
.highlights > div {
  background: var(--raised); border-radius: 12px; padding: 1rem 1.2rem; display: flex; flex-direction: column;
}
.highlights .label { color: var(--muted); font-size: 0.9rem; }
.highlights .value { font-size: 1.9rem; font-weight: 650; line-height: 1.25; font-variant-numeric: tabular-nums; }
.highlights .note { color: var(--muted); font-size: 0.85rem; }
figure { margin: 1.5rem 0; }
figure > .scroll {
  background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 0.25rem; width: fit-content; max-width: 100%;
}
figure svg { display: block; max-width: 100%; height: auto; }
figcaption { color: var(--muted); font-size: 0.92rem; margin-top: 0.5rem; max-width: 44rem; }
.row { display: flex; flex-wrap: wrap; gap: 1.25rem; align-items: flex-start; margin: 1.5rem 0; }
.row figure { margin: 0; max-width: 100%; }
details { margin: 0.75rem 0; }
summary { cursor: pointer; color: var(--accent); padding: 0.35rem 0; }
@media print {
  :root { --paper: #fff; --raised: #f3f4f6; --ink: #000; --muted: #444; --line: #bbb; --accent: #1f4e9c; }
  html { font-size: 10.5pt; }
  figure > .scroll { background: #fff; }
  figure:not(.photographs) svg { filter: none; mix-blend-mode: normal; }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  h2, h3 { break-after: avoid; }
  figure, table, .highlights { break-inside: avoid; }
}
)css";

}  // namespace qkv
