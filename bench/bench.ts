// What Latchkey does beside the least that Node's servers do, beside its peers and beside its own targets: `npm run bench`.
// Names of sections run those alone; `keys=10000000` is for the growth, cold and lists sections, `minutes=5` for the end of
// the cold one; `before before=<dist>` compares with an earlier build, `only=plain,grpc` in some figures; `profile` leaves CPU profiles in the folder `profiles`;
// `quick` takes rounds so short that they only show whether everything runs. Only a run of everything, in full, is written
// into docs/benchmarks.md.
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { Endings } from "./harness/endings.ts";
import { describeMachine } from "./harness/machine.ts";
import { describeGoals, describeSection, type Outcome, writeIntoPage } from "./harness/report.ts";
import type { Bench, Section } from "./harness/section.ts";
import { prepareLoads } from "./loads/load-programs.ts";
import { sections } from "./sections/index.ts";

// The compiler shares the servers' core: before it has caught up, a server with more code looks slower than it is.
const turns = { rounds: 5, roundMs: 1000, warmUpMs: 3000 };
const quickTurns = { rounds: 1, roundMs: 1000, warmUpMs: 1000 };
const page = join(import.meta.dirname, "../docs/benchmarks.md");
const options = readOptions(process.argv.slice(2));
const endings = new Endings();
let interrupted = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    interrupted = true;
    await endings.run();
    process.exit(1);
  });
}

const startedMs = performance.now();
const loadAverage = os.loadavg()[0] as number;
const outcomes: Outcome[] = [];
for (const section of options.sections) {
  const outcome = { section, findings: await measure(section) };
  // The section failed because its servers were ended; the signal's handler ends the process.
  if (interrupted) await new Promise(() => {});
  outcomes.push(outcome);
  console.log(`\n${describeSection(outcome)}\n\n${describeGoals([outcome])}`);
}
const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
const summary = `The run took ${minutes} minutes.\n\n${describeGoals(outcomes)}`;
console.log(`\n${summary}`);
if (options.isWhole) {
  const where = `${describeMachine(loadAverage)}.`;
  writeIntoPage(page, [where, summary, ...outcomes.map(describeSection)].join("\n\n"));
  console.log(`\n${where} Written into docs/benchmarks.md.`);
}
process.exit(outcomes.some(({ findings }) => findings instanceof Error) ? 1 : 0);

async function measure(section: Section): Promise<Outcome["findings"]> {
  const folder = mkdtempSync(join(os.tmpdir(), "latchkey-bench-"));
  endings.add(() => rmSync(folder, { recursive: true, force: true }));
  const bench: Bench = { ...options.bench, folder, loads: prepareLoads(folder), atEnd: endings.add };
  try {
    return await section.measure(bench);
  } catch (error) {
    console.error(error);
    return error as Error;
  } finally {
    await endings.run();
  }
}

function readOptions(args: readonly string[]) {
  const names = args.filter((arg) => Object.hasOwn(sections, arg));
  const numberOf = (name: string) => args.find((arg) => new RegExp(`^${name}=[\\d.]+$`).test(arg))?.split("=")[1];
  const [keys, minutes] = [numberOf("keys"), numberOf("minutes")];
  const [profile, quick] = ["profile", "quick"].map((word) => args.includes(word)) as [boolean, boolean];
  const before = args.find((arg) => arg.startsWith("before="))?.slice("before=".length);
  const only = args.find((arg) => arg.startsWith("only="))?.slice("only=".length);
  const withValue = [`before=${before}`, `only=${only}`, `keys=${keys}`, `minutes=${minutes}`];
  const known = new Set([...names, "profile", "quick", ...withValue]);
  const unknown = args.filter((arg) => !known.has(arg));
  if (unknown.length > 0) {
    console.error(`not known: ${unknown.join(", ")}; sections are ${Object.keys(sections).join(", ")}`);
    process.exit(2);
  }
  return {
    sections: Object.entries(sections)
      .filter(([name]) => (names.length === 0 ? name !== "before" : names.includes(name)))
      .map(([, section]) => section),
    isWhole: names.length === 0 && !profile && !quick,
    bench: {
      turns: quick ? quickTurns : turns,
      growthKeys: Number(keys ?? 1_000_000),
      coldMinutes: Number(minutes ?? 1.25),
      profile,
      before,
      only: only?.split(","),
    },
  };
}
