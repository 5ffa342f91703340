// One region of bench/strict.ts, `fork`ed. Told {links}, it connects; told an order, it verifies one key for a while, at
// random moments as callers do, and answers what became of it.
import { SeededRandom } from "../test/domain/seeded-random.ts";
import {
  type ContestantName,
  connectContestants,
  type Decision,
  type RegionLinks,
  type Rule,
} from "./strict-contestants.ts";

export interface Order {
  readonly contestant: ContestantName;
  readonly key: string;
  readonly rule: Rule;
  readonly perSecond: number;
  readonly ms: number;
  readonly seed: number;
}

export interface RegionReport {
  /** How long each that was admitted waited, in milliseconds. */
  readonly waits: readonly number[];
  /** Admitted by the end of their window. */
  readonly windows: readonly (readonly [endsAtMs: number, admitted: number])[];
  readonly verified: number;
  /** Could not be decided. */
  readonly failed: number;
  /** Messages to where the truth is. */
  readonly sent: number;
  /** Until the last one was decided. */
  readonly tookMs: number;
}

let contestants: Awaited<ReturnType<typeof connectContestants>>;

process.on("message", async (message: { links: RegionLinks } | Order) => {
  if ("links" in message) {
    contestants = await connectContestants(message.links);
    process.send?.("connected");
  } else {
    process.send?.(await drive(message));
  }
});

async function drive({ contestant, key, rule, perSecond, ms, seed }: Order): Promise<RegionReport> {
  const limiter = contestants[contestant];
  const random = new SeededRandom(seed);
  const waits: number[] = [];
  const windows = new Map<number, number>();
  const pending = new Set<Promise<void>>();
  const sentBefore = limiter.sent;
  let verified = 0;
  let failed = 0;
  const note = ({ admitted, endsAtMs }: Decision, calledMs: number) => {
    verified++;
    if (!admitted) return;
    waits.push(performance.now() - calledMs);
    windows.set(endsAtMs, (windows.get(endsAtMs) ?? 0) + 1);
  };
  const verify = () => {
    const calledMs = performance.now();
    const decision = limiter.verify(key, rule);
    if (!(decision instanceof Promise)) return note(decision, calledMs);
    const settled = decision
      .then((decided) => note(decided, calledMs))
      .catch(() => void failed++)
      .finally(() => pending.delete(settled));
    pending.add(settled);
  };

  const startedMs = performance.now();
  const gapMs = () => (-Math.log(random.integer(1, 2 ** 30) / 2 ** 30) * 1000) / perSecond;
  for (let nextMs = startedMs + gapMs(); nextMs < startedMs + ms; ) {
    for (const nowMs = performance.now(); nextMs <= nowMs; nextMs += gapMs()) verify();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  const tookMs = performance.now() - startedMs;
  return { waits, windows: [...windows], verified, failed, sent: limiter.sent - sentBefore, tookMs };
}
