// Attacks a server from a separate process at low priority: the server and the honest client are measured, not this.
// Run by fork; is sent an order, and reports what was wrong from its own view.

import os from "node:os";
import { SeededRandom } from "../../domain/seeded-random.ts";
import type { Attack, AttackOrder, AttackReport } from "./field.ts";
import { http1Attacks } from "./http1-attacks.ts";
import { http2Attacks } from "./http2-attacks.ts";
import { slowAttacks, tooSlowAttacks } from "./slow-attacks.ts";
import { warmUp } from "./warm-up.ts";

const attacks: Readonly<Record<string, Attack>> = {
  ...http1Attacks,
  ...http2Attacks,
  ...slowAttacks,
  ...tooSlowAttacks,
  ...warmUp,
};

os.setPriority(os.constants.priority.PRIORITY_LOW);

process.on("message", async ({ attack, seed, forMs, ...rest }: AttackOrder) => {
  const field = { ...rest, random: new SeededRandom(seed), untilMs: performance.now() + forMs };
  const problems = (await attacks[attack]?.(field)) ?? [`there is no attack "${attack}"`];
  // Where one connection fails, many do, and in the same way.
  const report: AttackReport = { problems: [...new Set(problems)].slice(0, 5) };
  // The arena may be gone by now.
  process.send?.(report, () => {});
});
process.on("disconnect", () => process.exit());
