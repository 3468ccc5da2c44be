// Charts by Observable Plot, redrawn when data, size or theme change.
import * as Plot from "@observablehq/plot";
import { useEffect, useRef, useState } from "preact/hooks";
import { chosenTheme, isDark, systemDark } from "./colors";

interface Props {
  options: (width: number) => Plot.PlotOptions;
  deps: unknown[];
  label: string;
}

export function Chart({ options, deps, label }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(() => box.current && setWidth(box.current.clientWidth));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (!width) return;
    const chart = Plot.plot({ width, style: { fontSize: "12px", background: "transparent" }, ...options(width) });
    chart.style.setProperty("--plot-background", isDark() ? "#14161a" : "#ffffff");
    chart.setAttribute("aria-label", label);
    box.current!.replaceChildren(chart);
    box.current!.dataset.ready = "true";
  }, [width, chosenTheme.value, systemDark.value, ...deps]);
  return <div class="chart" ref={box} data-ready="false" />;
}
