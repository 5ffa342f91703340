import { createHook } from "node:async_hooks";

/** Never read: what is in here is not collected. */
const kept: unknown[] = [];

/**
 * Keeps `process.nextTick` fast. V8 remembers the hidden classes of the object that Node makes for each call. If garbage
 * is collected while no such object exists, V8 forgets them, and from then on makes each object by slow, general code,
 * for as long as the process runs: 1.5 µs a call. Node reads with one such call from every socket. One object that is
 * kept keeps the classes. Only worth it before the first collection, so at the start of a process.
 */
export function keepTickShape(): void {
  const init = (_id: number, type: string, _trigger: number, tick: object) => type === "TickObject" && kept.push(tick);
  const hook = createHook({ init }).enable();
  process.nextTick(() => {});
  hook.disable();
}
