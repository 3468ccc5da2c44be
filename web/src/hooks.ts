// Hooks of every view: answers that come late, and the width an element has.
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "./api";

/** Asks when `deps` change; an answer that arrives after the next change is dropped. */
export function useAnswer<T>(
  ask: () => Promise<T> | null | undefined | false,
  deps: unknown[],
  take: (answer: T) => void,
  fail: (error: ApiError) => void,
): void {
  useEffect(() => {
    let current = true;
    const answer = ask();
    if (answer)
      answer.then(
        (value) => current && take(value),
        (error: ApiError) => current && fail(error),
      );
    return () => {
      current = false;
    };
  }, deps);
}

/** The width of an element's inside, 0 before it is known; looked for again when `there` changes. */
export function useWidth(box: RefObject<HTMLElement>, there = true): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, [there]);
  return width;
}

/** Scrolls a box of tokens so that the one of that number is in its middle. */
export function useInSight(box: RefObject<HTMLElement>, index: number): void {
  useEffect(() => {
    const token = box.current?.children[index] as HTMLElement | undefined;
    if (token) box.current!.scrollTop = token.offsetTop - box.current!.offsetTop - box.current!.clientHeight / 2;
  }, [index]);
}

/** Calls `tick` every `ms` milliseconds while `on`; `deps` are what `tick` reads. */
export function useTimer(on: boolean, ms: number, tick: () => void, deps: unknown[]): void {
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(tick, ms);
    return () => clearInterval(timer);
  }, [on, ms, ...deps]);
}
