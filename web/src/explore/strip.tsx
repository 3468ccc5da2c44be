// A vector as bars: one dimension each, up where it is positive, down where it is negative.
import { inks } from "../colors";

export interface Strip {
  name: string;
  note: string;
  values: number[];
}

const height = 48;
/** Largest distance from 0, where the bars of a strip end. */
const reachOf = (values: number[]): number => values.reduce((a, v) => Math.max(a, Math.abs(v)), 0);

/** The bars as SVG, `width` pixels wide; the dimension looked at has a frame. */
function barsOf(values: number[], width: number, at: number): string {
  const { accent, strong, grid, ink } = inks();
  const reach = reachOf(values) || 1;
  const wide = width / Math.max(1, values.length);
  const gap = wide > 4 ? 1 : 0;
  const bar = (v: number, i: number) => {
    const tall = (Math.abs(v) / reach) * (height / 2 - 2);
    const y = v > 0 ? height / 2 - tall : height / 2;
    const place = `x="${(i * wide).toFixed(2)}" y="${y.toFixed(2)}"`;
    return `<rect ${place} width="${(wide - gap).toFixed(2)}" height="${tall.toFixed(2)}" fill="${v > 0 ? accent : strong}"/>`;
  };
  const middle = `<path d="M0 ${height / 2}H${width}" stroke="${grid}"/>`;
  const frame =
    at >= 0 && at < values.length
      ? `<rect x="${(at * wide).toFixed(2)}" y="0.5" width="${Math.max(2, wide - gap).toFixed(2)}" height="${height - 1}" fill="none" stroke="${ink}"/>`
      : "";
  return middle + values.map(bar).join("") + frame;
}

interface Props {
  strip: Strip;
  at: number; // the dimension looked at, -1 = none
  onAt: (dimension: number) => void;
}

export function StripView({ strip: { name, note, values }, at, onAt }: Props) {
  const width = 640;
  const move = (e: PointerEvent & { currentTarget: Element }) => {
    const r = e.currentTarget.getBoundingClientRect();
    const i = Math.floor(((e.clientX - r.left) / r.width) * values.length);
    onAt(i >= 0 && i < values.length ? i : -1);
  };
  return (
    <figure class="strip">
      <figcaption>
        <b>{name}</b> {note} <span class="n">up to ±{reachOf(values).toPrecision(3)}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name} ${note}: ${values.length} dimensions`}
        onPointerMove={move}
        onPointerDown={move}
        onPointerLeave={() => onAt(-1)}
        dangerouslySetInnerHTML={{ __html: barsOf(values, width, at) }}
      />
    </figure>
  );
}
