// A menu of choices.

interface Props<T extends string> {
  id?: string;
  label?: string; // where no label element surrounds it
  value: T;
  options: readonly (readonly [T, string])[]; // value and text
  onChange: (value: T) => void;
}

export function Select<T extends string>({ id, label, value, options, onChange }: Props<T>) {
  return (
    <select id={id} aria-label={label} value={value} onChange={(e) => onChange(e.currentTarget.value as T)}>
      {options.map(([name, text]) => (
        <option value={name}>{text}</option>
      ))}
    </select>
  );
}

/** `n` choices by number: "layer 0", "layer 1", … */
export const numbered = (n: number, name: string): [string, string][] =>
  Array.from({ length: n }, (_, i) => [String(i), `${name} ${i}`]);

/** The help of a setting without the dashes that only the command line has. */
export const plain = (help: string): string => help.replace(/--(?=[a-z])/g, "");
