import { describe, expect, it, vi } from "vitest";
import type { Change } from "../../src/store/changes.ts";
import { openRawStream } from "./raw-stream.ts";
import { edgeAt, startTestCoordinator } from "./test-coordinator.ts";

const changes: readonly Change[] = [
  { kind: "key", keyId: "key_1", digests: ["0".repeat(64)] },
  { kind: "owner", ownerId: "acme", isNew: false },
  { kind: "rootKeys" },
];

describe("a change that is announced to fronts", () => {
  it("has been acted on by each of them when the announcement resolves", async () => {
    const { address, streams } = await startTestCoordinator();
    const seen: Change[][] = [[], []];
    const edges = seen.map((own) => edgeAt([address], { onAnnounced: (announced) => void own.push(...announced) }));
    await Promise.all(edges.map(({ core }) => core.usable));
    for (const [i, change] of changes.entries()) {
      await streams.announce(change);
      for (const own of seen) expect(own).toEqual(changes.slice(0, i + 1));
    }
    // And several of one turn.
    await Promise.all(changes.map((change) => streams.announce(change)));
    for (const own of seen) expect(own).toEqual([...changes, ...changes]);
  });

  it("is waited for until a front says so, or has gone", async () => {
    const { address, streams } = await startTestCoordinator();
    const front = openRawStream(address);
    front.send({ seenTimeMs: 0 });
    await vi.waitFor(() => expect(front.messages.length).toBeGreaterThan(0));
    const acted: string[] = [];
    void streams.announce({ kind: "rootKeys" }).then(() => acted.push("first"));
    void streams.announce({ kind: "imports" }).then(() => acted.push("second"));
    await vi.waitFor(() => expect(front.messages.flatMap((each) => each.changes)).toHaveLength(2));
    const numbers = front.messages.map(({ changesNumber }) => changesNumber);
    expect([acted, Math.max(...numbers)]).toEqual([[], 2]);
    front.send({ changesSeen: 1 });
    await vi.waitFor(() => expect(acted).toEqual(["first"]));
    front.cancel();
    await vi.waitFor(() => expect(acted).toEqual(["first", "second"]));
  });

  it("is not waited for where no front has a stream", async () => {
    const { streams } = await startTestCoordinator();
    await streams.announce({ kind: "rootKeys" });
  });
});
