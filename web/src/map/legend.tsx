// The colours of a map, with the numbers at their ends.
import { colorTable, css, type Scale } from "../colors";
import { state, update } from "../state";
import { endsOf, liftReach, type Matrix } from "./matrix";

const digits = (v: number): string => String(Number(v.toPrecision(3)));

function ends(m: Matrix, scale: Scale): [string, string] {
  const { top, low, high } = endsOf(m);
  const both = m.shared ? " of both runs" : "";
  switch (scale) {
    case "largest":
      if (top === high) return ["0", `${digits(high)}, the largest weight${both}`];
      if (both)
        return ["0", `${digits(top)}, the largest weight${both}, and above (${digits(high)} where few keys are seen)`];
      return ["0", `${digits(top)} and above (${digits(high)} where few keys are seen)`];
    case "abs":
      return ["0", "1"];
    case "row":
      return ["0", "each row's largest"];
    case "lift": {
      const most = 2 ** liftReach(m);
      return [`1/${most} × uniform`, `${most} × uniform`];
    }
    case "auto":
      return [digits(low), both ? `${digits(high)}, the lowest and highest${both}` : digits(high)];
    case "centered": {
      const reach = Math.max(Math.abs(low), Math.abs(high));
      return [`−${digits(reach)}`, `+${digits(reach)}`];
    }
  }
}

/** What a saved picture, which has no legend, says of its colours. */
export const coloursOf = (m: Matrix, scale: Scale): string => `Colours go from ${ends(m, scale).join(" to ")}.`;

/** The other of the two scales from 0, one click away. */
function Switch({ scale }: { scale: Scale }) {
  if (scale !== "largest" && scale !== "abs") return null;
  const to = scale === "largest" ? "abs" : "largest";
  return (
    <button type="button" class="chip" id="scale-switch" onClick={() => update({ scale: to })}>
      {to === "abs" ? "colours 0 to 1" : "colours to the largest weight"}
    </button>
  );
}

/** `fixed`: the scale cannot be changed here. */
export function Legend({ m, scale, fixed = false }: { m: Matrix; scale: Scale; fixed?: boolean }) {
  const table = colorTable(scale);
  const stops = Array.from({ length: 17 }, (_, i) => css(table, i / 16)).join(",");
  const [low, high] = ends(m, scale);
  return (
    <span class="colorbar">
      {low} <span class="bar" style={{ background: `linear-gradient(90deg,${stops})` }} /> {high}
      {!fixed && <Switch scale={scale} />}
      {m.values.some(Number.isNaN) && (
        <>
          <span class="masked" /> masked
        </>
      )}
    </span>
  );
}

/** The scale of a map: scores have their own. */
export const scaleOf = (m: Pick<Matrix, "kind">): Scale => (m.kind === "scores" ? "auto" : state.value.scale);
