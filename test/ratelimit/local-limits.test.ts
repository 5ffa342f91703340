import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { WindowTable } from "../../src/domain/window-table.ts";
import { LocalLimiter } from "../../src/ratelimit/local/local-limiter.ts";
import { saveWindows, takeSavedWindows } from "../../src/ratelimit/local/saved-windows.ts";
import { MemoryHub } from "../../src/ratelimit/local/window-hub.ts";
import { isDeep, sized } from "../support/deep.ts";
import { brokenLimiters, loadBroken } from "./broken-limiters.ts";
import { type Product, simulate, stepKinds } from "./simulated-replicas.ts";

const product: Product = { WindowTable, LocalLimiter, MemoryHub, saveWindows, takeSavedWindows };
const seedsMax = sized(100, 400);
/** A mistake that hardly ever shows is given more time to. */
const seedsForMistakes = 2000;

describe("local limits of replicas that are cut off, restarted, told late, twice or not at all", () => {
  it(`keep every promise through every kind of step (seeds 1 to ${seedsMax})`, async () => {
    const folder = memoryFolder();
    const steps = new Map<string, number>();
    for (let seed = 1; seed <= seedsMax; seed++) {
      const run = await simulate(seed, product, folder);
      expect(run.violation).toBeUndefined();
      for (const [kind, times] of run.steps) steps.set(kind, (steps.get(kind) ?? 0) + times);
    }
    for (const kind of stepKinds) expect(steps.get(kind), kind).toBeGreaterThan(seedsMax / 2);
  });
});

if (!isDeep) {
  describe("the same simulation catches a limiter that", () => {
    it.each(brokenLimiters)("$mistake", async (broken) => {
      const folder = memoryFolder();
      expect(await firstViolation(await loadBroken(broken, folder), folder)).toMatch(/^seed \d+: /);
    });
  });
}

async function firstViolation(broken: Product, folder: string): Promise<string | undefined> {
  for (let seed = 1; seed <= seedsForMistakes; seed++) {
    const { violation } = await simulate(seed, broken, folder);
    if (violation !== undefined) return violation;
  }
  return undefined;
}

/** Saved windows are written through to the disk, and thousands are saved here: in memory that costs nothing. */
function memoryFolder(): string {
  const path = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "latchkey-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
