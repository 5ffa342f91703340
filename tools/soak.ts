// Long runs: `npm run soak -- <minutes>`, or with `life [minutes]`, `explain`, `usage`, `news`, `index` or `regions [scenario]`.
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const usage = `usage: npm run soak -- <minutes>              strict limits under load, faults and repairs; 10 by default
       npm run soak -- life [minutes]         random operations from many seeds; 5 minutes by default
       npm run soak -- explain                100 000 explanations beside the verifications that they explain
       npm run soak -- usage                  what was spent equals the ledger through a million uses on each store
       npm run soak -- news                   what edges learn of changes: 20 restarts, a commit held for a minute
       npm run soak -- index                  indexes are built on a million rows while verifications run
       npm run soak -- regions [scenario]     regions far apart; as root; only scenarios whose name contains the text`;

const [what = "10", ...rest] = process.argv.slice(2);
const isLife = what === "life" && rest.length <= 1;
const minutes = Number(isLife ? (rest[0] ?? "5") : what);
const isRegions = what === "regions";
const isNamed = isLife || (["explain", "index", "news", "usage"].includes(what) && rest.length === 0);
const isTimed = minutes > 0 && minutes <= 1440 && (isLife || rest.length === 0);
if (isLife ? !isTimed : !isRegions && !isNamed && !isTimed) {
  console.error(usage);
  process.exit(2);
}
const root = join(import.meta.dirname, "..");
// Everything that the run puts on the disk is in here, and is removed after it, however it ends.
const folder = mkdtempSync(join(tmpdir(), "latchkey-soak-"));
// Postgres, which does not run as root, has its folder in it.
chmodSync(folder, 0o755);
const ofRegions = ["regions.soak", ...(rest.length > 0 ? ["-t", rest.join(" ")] : [])];
const filter = isRegions ? ofRegions : [isNamed ? `${what}.soak` : "strict.soak"];
const child = spawn("vitest", ["run", "--config", "test/soak/vitest.config.ts", ...filter], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, TMPDIR: folder, LATCHKEY_SOAK_MINUTES: minutes > 0 ? String(minutes) : "" },
});
// Otherwise what it has started would outlive it, some of it stopped on purpose.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill("SIGINT"));
child.on("close", (code) => {
  // Processes of an interrupted run may write for a moment longer.
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
  process.exit(code ?? 1);
});
