import { expect, it } from "vitest";
import { runCases } from "../explain/run-cases.ts";
import { World } from "../explain/world.ts";

/* The random verifications of test/explain, ten times as many, from a fresh seed. */

const seed = Number(process.env.LATCHKEY_SOAK_SEED ?? Date.now() % 1_000_000);

it(`explanations of 100 000 random verifications agree with them, from seed ${seed}`, async () => {
  const { problems, codes } = await runCases(await World.open(), { seed, cases: 100_000 });
  console.log(Object.fromEntries(codes));
  expect(problems.slice(0, 5).join("\n")).toBe("");
});
