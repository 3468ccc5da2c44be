// One setting of an experiment: a slider with its number, a menu, a field or a tick.
import type { Setting } from "../api";
import { plain, Select } from "../select";
import { Formula } from "./formula";

/** Where a slider goes: the limits, or around the default where there are none; over decades when the range is wide. */
function sliderRange(s: Setting): { low: number; high: number; log: boolean } {
  const standard = Math.abs(Number(s.value)) || 1;
  const whole = s.kind === "integer";
  const low = s.low ?? -4 * standard;
  const most = Math.max(4 * standard, whole ? 8 : 2);
  const high = Math.min(s.high ?? Infinity, s.high !== undefined && s.high <= 100 * standard ? s.high : most);
  const log = low > 0 && high / low >= 1000;
  return { low, high: Math.max(high, low + (whole ? 1 : 1e-6)), log };
}

interface Props {
  setting: Setting;
  value: string;
  onChange: (v: string) => void;
  onDrag: (held: boolean) => void;
}

const idOf = (setting: Setting) => `set-${setting.name}`;

export function Control(props: Props) {
  const { setting, value, onChange } = props;
  const name = <span class="name">{setting.name}</span>;
  const help = (
    <small>
      <Formula text={plain(setting.help)} />
    </small>
  );
  if (setting.kind === "flag") {
    const turn = () => onChange(value === "true" ? "false" : "true");
    return (
      <label class="control flag">
        <input id={idOf(setting)} type="checkbox" checked={value === "true"} onChange={turn} /> {name}
        {help}
      </label>
    );
  }
  return (
    <label class="control">
      {name}
      <Field {...props} />
      {help}
    </label>
  );
}

function Field(props: Props) {
  const { setting, value, onChange } = props;
  const id = idOf(setting);
  if (setting.kind === "choice") {
    const options = (setting.choices ?? []).map((c) => [c, c] as const);
    return <Select id={id} value={value} options={options} onChange={onChange} />;
  }
  if (setting.kind === "text") return <input id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)} />;
  return <Slider {...props} />;
}

function Slider({ setting, value, onChange, onDrag }: Props) {
  const whole = setting.kind === "integer";
  const { low, high, log } = sliderRange(setting);
  const to = (v: number) => (log ? Math.log10(v) : v);
  const from = (v: number) => {
    const x = log ? 10 ** v : v;
    return String(whole ? Math.round(x) : Number(x.toPrecision(4)));
  };
  return (
    <span class="slider">
      <input
        type="range"
        aria-label={`${setting.name} slider`}
        min={to(low)}
        max={to(high)}
        step={whole && !log ? 1 : (to(high) - to(low)) / 200}
        value={to(Number(value))}
        onPointerDown={() => onDrag(true)}
        onPointerUp={() => onDrag(false)}
        onPointerCancel={() => onDrag(false)}
        onInput={(e) => onChange(from(Number(e.currentTarget.value)))}
      />
      <input
        id={idOf(setting)}
        type="number"
        step={whole ? 1 : "any"}
        value={value}
        onChange={(e) => onChange(e.currentTarget.value)}
      />
    </span>
  );
}
