// The harness of test/hostile for as long as is asked for: `npm run hostile -- --seed <seed> --minutes <minutes>`.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { seed: { type: "string" }, minutes: { type: "string" } } });
const seed = Number(values.seed ?? Date.now() % 2 ** 32);
const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
if (!Number.isInteger(seed) || (minutes !== undefined && !(minutes > 0 && minutes <= 1440))) {
  console.error("usage: npm run hostile -- [--seed <whole number>] [--minutes <at most 1440>]");
  console.error("without minutes: what npm run test:deep does, once");
  process.exit(2);
}
console.log(`seed ${seed}`);
// One after the other: each part gets a share of the minutes.
const child = spawn("vitest", ["run", "test/hostile/", "--no-file-parallelism", "--disable-console-intercept"], {
  cwd: join(import.meta.dirname, ".."),
  stdio: "inherit",
  env: {
    ...process.env,
    LATCHKEY_TEST_DEEP: "on",
    LATCHKEY_HOSTILE_SEED: String(seed),
    ...(minutes !== undefined && { LATCHKEY_HOSTILE_MINUTES: String(minutes) }),
    // None of it needs Postgres or Redis.
    LATCHKEY_TEST_SERVERS: "off",
  },
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill("SIGINT"));
child.on("close", (code) => process.exit(code ?? 1));
