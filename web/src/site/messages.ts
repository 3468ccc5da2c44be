// What the page and its workers say to each other.

/**
 * Where the site's files are: below this address, or inside the page (in base64, by name).
 * `runs`: load the site's runs too, beginning with this one ("" = with the first).
 */
export interface Start {
  base: string;
  inside: Record<string, string>;
  runs?: string;
}

/** A function of wasm/binding.cc; bytes are handed over with their number after them, null as no bytes. */
export interface Call {
  id: number;
  name: string;
  values: (string | number | ArrayBuffer | null)[];
}

export interface Answer {
  status: number;
  type: string;
  body: ArrayBuffer;
}

/** An answer; or what went wrong in the worker, which is of no use after it. */
export type Reply = { id: number } & (Answer | { trouble: string });
