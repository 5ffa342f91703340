import { describe, expect, it, onTestFinished, vi } from "vitest";
import { brokenRelays } from "./broken-relays.ts";
import { type CreateRelay, createRelay, runRelayModel } from "./relay-model.ts";

const seeds = Array.from({ length: 500 }, (_, i) => i + 1);

async function runAll(create: CreateRelay): Promise<Record<string, number>> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const sums: Record<string, number> = {};
  for (const seed of seeds) {
    const figures = await runRelayModel(seed, create);
    for (const [what, count] of Object.entries(figures)) sums[what] = (sums[what] ?? 0) + count;
  }
  return sums;
}

describe("fronts that read two relays in turn, in random runs", () => {
  it("are told of every change before they take news for current that is younger", async () => {
    const figures = await runAll(createRelay);
    // The runs got there.
    expect(figures.changes).toBeGreaterThan(1000);
    expect(figures.nothing).toBeGreaterThan(1000);
    expect(figures.everything).toBeGreaterThan(500);
  });

  it.each(brokenRelays)("are found to miss one if a relay $mistake", async ({ create }) => {
    await expect(runAll(create)).rejects.toThrow("a front takes news for current");
  });
});
