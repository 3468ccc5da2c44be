// A table whose numbers are bars too.
import { shown } from "../map/tokens";

export interface BarRow {
  label: string;
  value: number;
  chosen?: boolean;
  pick?: () => void; // makes the label a button
}

export function Bars({ rows, color }: { rows: BarRow[]; color: string }) {
  return (
    <table class="bar-table">
      <tbody>
        {rows.map(({ label, value, chosen, pick }) => (
          <tr class={chosen ? "chosen" : ""}>
            <th>
              {pick ? (
                <button type="button" class="link" aria-label={`Say “${shown(label)}” here`} onClick={pick}>
                  {shown(label)}
                </button>
              ) : (
                shown(label)
              )}
            </th>
            <td class="bar-cell">
              <span class="bar" style={{ width: `${100 * value}%`, background: color }} />
            </td>
            <td class="n">{value.toFixed(4)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
