// Charts by Observable Plot, redrawn when data, size or theme change.
import * as Plot from "@observablehq/plot";
import { useEffect, useRef } from "preact/hooks";
import { chosenTheme, inks, systemDark } from "./colors";
import { useWidth } from "./hooks";

interface Props {
  options: (width: number) => Plot.PlotOptions;
  deps: unknown[];
  label: string;
  drawn?: (chart: SVGElement) => void; // what else is done to a chart that was just drawn
}

export function Chart({ options, deps, label, drawn }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  useEffect(() => {
    if (!width) return;
    const chart = Plot.plot({ width, style: { fontSize: "12px", background: "transparent" }, ...options(width) });
    chart.style.setProperty("--plot-background", inks().background);
    chart.setAttribute("aria-label", label);
    box.current!.replaceChildren(chart);
    drawn?.(chart as SVGElement);
    box.current!.dataset.ready = "true";
  }, [width, chosenTheme.value, systemDark.value, ...deps]);
  return <div class="chart" ref={box} data-ready="false" />;
}
