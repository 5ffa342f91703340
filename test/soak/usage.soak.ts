import { expect, it } from "vitest";
import { startEmbedded, startReplicasAndEdge } from "../support/spending/services.ts";
import { SpendingTrial } from "../support/spending/trial.ts";

/* The faults of test/faults/spending.test.ts, through a million uses on each store, from a fresh seed. */

const uses = Number(process.env.LATCHKEY_SOAK_USES ?? 1_000_000);
const seed = Number(process.env.LATCHKEY_SOAK_SEED ?? Date.now() % 1_000_000);

it.each([
  { name: "one process on the embedded store", start: startEmbedded(1), usesPerRound: 25_000 },
  { name: "workers on the embedded store", start: startEmbedded(2), usesPerRound: 25_000 },
  { name: "three replicas and an edge on Postgres", start: startReplicasAndEdge, usesPerRound: 50_000 },
])(
  `what was spent through ${uses} uses of $name is what left the ledger, from seed ${seed}`,
  async ({ start, usesPerRound }) => {
    const rounds = Math.ceil(uses / usesPerRound);
    const { valid, load, service } = await SpendingTrial.run({ start, uses, rounds, seed });
    console.log(JSON.stringify(load.answers), `${service.cuts()} answers cut`);
    expect(valid).toBeGreaterThanOrEqual(uses);
  },
);
