// Strict limits under load, faults and repairs for as long as is asked for: `npm run soak -- <minutes>`.
import { spawn } from "node:child_process";
import { join } from "node:path";

const minutes = Number(process.argv[2] ?? "10");
if (!(minutes > 0 && minutes <= 1440)) {
  console.error("usage: npm run soak -- <minutes, 10 unless told>");
  process.exit(2);
}
const root = join(import.meta.dirname, "..");
const child = spawn("vitest", ["run", "--config", "test/soak/vitest.config.ts"], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, LATCHKEY_SOAK_MINUTES: String(minutes) },
});
// Otherwise what it has started would outlive it, some of it stopped on purpose.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill("SIGINT"));
child.on("close", (code) => process.exit(code ?? 1));
