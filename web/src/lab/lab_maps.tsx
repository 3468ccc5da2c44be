// Maps of the lab: several small ones side by side.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { LabMap, LabMaps } from "../api";
import { sharpContext } from "../canvas";
import { chosenTheme, isDark, type Scale, systemDark } from "../colors";
import { drawMap, mapLayout, mapSize } from "../map/heatmap_draw";
import { coloursOf } from "../map/legend";
import type { Matrix } from "../map/matrix";
import { Tiles } from "../map/tiles";
import { mapSvg } from "../save/map_svg";
import { Formula } from "./formula";

function matrixOf(m: LabMap): Matrix {
  const low = (label: string) => label.replace(/_(\d)/g, (_, d) => String.fromCharCode(0x2080 + Number(d)));
  const labels = (given: string[], n: number) => Array.from({ length: n }, (_, i) => low(given[i] ?? String(i)));
  return {
    rows: m.rows,
    cols: m.columns,
    values: Float32Array.from(m.values, (v, i) => (v === null || m.hidden[i] ? NaN : v)),
    rowLabels: labels(m.row_labels, m.rows),
    colLabels: labels(m.column_labels, m.columns),
    rowTitle: m.row_title || "query",
    colTitle: m.column_title || "key",
  };
}

function scaleOf(m: LabMap): Scale {
  if (m.centered) return "centered";
  return m.low >= 0 && m.high <= 1.0001 ? "abs" : "auto";
}

export function labMapSvg(map: LabMap): string {
  const [m, scale] = [matrixOf(map), scaleOf(map)];
  return mapSvg(map.title, m, scale, coloursOf(m, scale));
}

function SmallMap({ map, width }: { map: LabMap; width: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const m = useMemo(() => matrixOf(map), [map]);
  const layout = mapLayout(m);
  const fit = Math.floor((width - layout.left - layout.right) / m.cols);
  const size = Math.max(2, Math.min(m.rows * m.cols <= 64 ? 44 : 30, fit));
  const full = mapSize(m, layout, size);
  useEffect(() => {
    const c = sharpContext(canvas.current!, full.width, full.height);
    const tiles = new Tiles(m, scaleOf(map));
    drawMap(c, { tiles, layout, size, left: 0, top: 0, ...full, cursor: null, pinned: -1 });
  }, [m, size, isDark(), chosenTheme.value, systemDark.value]);
  return (
    <figure class="small-map">
      <figcaption>
        <Formula text={map.title} />
      </figcaption>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`${map.title}: ${m.rows} by ${m.cols} cells from ${map.low} to ${map.high}`}
        style={{ width: `${full.width}px`, height: `${full.height}px` }}
      />
    </figure>
  );
}

export function LabMapsView({ p, width }: { p: LabMaps; width: number }) {
  const each = Math.min(420, width < 560 ? width : width / Math.min(p.columns || 2, p.maps.length) - 16);
  return (
    <div class="lab-maps">
      <h3>
        <Formula text={p.title} />
      </h3>
      <div class="map-grid">
        {p.maps.map((m) => (
          <SmallMap map={m} width={each} />
        ))}
      </div>
      {p.caption && (
        <p class="caption">
          <Formula text={p.caption} />
        </p>
      )}
    </div>
  );
}
