// A page without a server: requests go to the program in a worker of this tab.
import { notice } from "../state";
import { Program } from "./program";

/** What a program that has just begun is given before it answers; the trainings of this tab see to it. */
export const beginning: { ready: Promise<void>; give: () => Promise<void> } = {
  ready: Promise.resolve(),
  give: () => Promise.resolve(),
};

const wanted = new URLSearchParams(location.hash.split("?")[1] ?? "").get("m") ?? "";
/** The program that answers; a training has one of its own. */
export const program = new Program(
  wanted,
  () => {
    beginning.ready = beginning.give();
  },
  (reason) => {
    notice.value = reason;
  },
);

/** fetch() for the routes of the program in this tab. */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const { signal, method = "GET", body = "" } = init;
  const bytes = new TextEncoder().encode(String(body)).buffer;
  program.begin();
  await beginning.ready;
  const answer = await program.call("qkv_answer", method, path, bytes);
  if (signal?.aborted) throw new DOMException("no longer wanted", "AbortError");
  return new Response(answer.body, { status: answer.status, headers: { "Content-Type": answer.type } });
}
