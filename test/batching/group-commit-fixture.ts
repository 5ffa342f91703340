import { createMetrics } from "../../src/ambient/metrics.ts";
import { GroupCommit } from "../../src/batching/group-commit.ts";
import { TestClock } from "../support/test-clock.ts";
import { HeldCommits } from "./held-commits.ts";

type Options = Partial<ConstructorParameters<typeof GroupCommit<string, string>>[0]>;

/** A batcher whose commits end when the test says so. It notes what the metrics are told of each batch. */
export function setUp(
  bounds: Pick<Options, "batchMax" | "weight" | "queueMax" | "batchesMax" | "queuedMs" | "onDequeued"> = {},
) {
  const commits = new HeldCommits<string, string>((item) => `${item} done`);
  const committed: { items: number; seconds: number }[] = [];
  const clock = new TestClock();
  const metrics = {
    ...createMetrics(),
    batchCommitted: (_: string, items: number, seconds: number) => void committed.push({ items, seconds }),
  };
  const batcher = new GroupCommit<string, string>({
    name: "test",
    batchMax: 100,
    queueMax: 100,
    ...bounds,
    commit: commits.commit,
    clock,
    metrics,
  });
  return { batcher, commits, committed, clock };
}
