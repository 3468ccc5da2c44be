// The WebAssembly build under Node.js: wasm/binding.cc's functions, called as a site's worker calls them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

/** call(name, ...values) gives {status, body}; texts and bytes are copied into the program's memory. */
export async function load(path) {
  const script = resolve(path);
  const qkv = await createRequire(import.meta.url)(script)({ wasmBinary: readFileSync(script.replace(/js$/, "wasm")) });
  return (name, ...values) => {
    const blocks = [];
    const handed = values.flatMap((value) => {
      if (typeof value === "number") return [value];
      const bytes = Buffer.concat([Buffer.from(value), Buffer.of(0)]);
      const at = qkv._malloc(bytes.length);
      blocks.push(at);
      qkv.HEAPU8.set(bytes, at);
      return typeof value === "string" ? [at] : [at, bytes.length - 1];
    });
    const status = qkv[`_${name}`](...handed);
    for (const at of blocks) qkv._free(at);
    const at = qkv._qkv_answer_body();
    return { status, body: Buffer.from(qkv.HEAPU8.slice(at, at + qkv._qkv_answer_bytes())) };
  };
}

/** A request, as the page makes it: {status, body}, the body as JSON. */
export function request(call, method, path, body = "") {
  const answer = call("qkv_answer", method, path, Buffer.from(body));
  return { status: answer.status, body: JSON.parse(answer.body) };
}
