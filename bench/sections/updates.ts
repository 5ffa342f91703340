import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../test/support/local-server.ts";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { readMetrics, sumMetric } from "../../test/support/read-metric.ts";
import { type Latchkey, rootKey, startLatchkey } from "../contestants/latchkey.ts";
import type { Bench, Goal, Section } from "../harness/section.ts";
import type { Changed, Order } from "../loads/change-keys-process.ts";
import { type Load, loadCore } from "../loads/load-programs.ts";
import { writeKeyFile } from "../loads/wrk-scripts.ts";
import { median } from "../rounds.ts";

const keysCount = 1000;
const updatesPerSecond = 100;
/** A caller that waits for each answer has to get as many through. */
const serialMin = 200;
const warmUp = { perSecond: 400, ms: 5000 };
/** How changes are made, for how long at a time, and how many times for each round that others have. */
const atRandomMoments = { perSecond: updatesPerSecond, sliceMs: 500, slicesPerRound: 8 } as const;
/** Longer: such a caller is noticed after some calls. */
const oneAfterTheOther = { perSecond: "one after the other", sliceMs: 2000, slicesPerRound: 2 } as const;
type Pace = typeof atRandomMoments | typeof oneAfterTheOther;
/** The load goes on for so much longer than the slices should take. It has to be under way in all of them. */
const loadedLonger = 1.8;
/** The part of all changes that may come after their slices, on a machine that stands still at times. */
const lateMax = 0.2;

export const updates: Section<"sqlite" | "sqliteSerial" | "sqliteSerialRate" | "pg" | "pgSerial" | "pgSerialRate"> = {
  title: "Changes under load",
  how: `${keysCount} cached keys verified in turn over 32 connections, without a pause. In every other slice of ${atRandomMoments.sliceMs} ms, ${updatesPerSecond} of them a second are changed by \`keys.updateKey\` (name and metadata), at random moments; then, in slices of ${oneAfterTheOther.sliceMs} ms, by one caller, one after the other, as fast as that goes. A changed key is looked up again. Before that, ${(warmUp.perSecond * warmUp.ms) / 1000} changes in ${warmUp.ms / 1000} s warm up the code of changes. The server has one core; the load and the caller of \`updateKey\` share the other, and Postgres runs on both. So the throughput also pays for the caller and the database, which are elsewhere in production: the targets go by the server's own processor time for each verification, with that of the changes. A slice is compared with the one before and the one after it; the ratios are medians.`,
  goals: { ...goalsOf("sqlite", "embedded store"), ...goalsOf("pg", "Postgres") },
  async measure(bench) {
    const sqlite = await measureStore(bench, "Embedded store", {});
    const server = await PostgresServer.start();
    bench.atEnd(() => server.remove());
    const pg = await measureStore(bench, "Postgres", { DATABASE_URL: await server.createDatabase() });
    return {
      text: [sqlite.text, pg.text],
      figures: {
        sqlite: sqlite.atRandom.ratio,
        sqliteSerial: sqlite.serial.ratio,
        sqliteSerialRate: sqlite.serial.changesPerSecond,
        pg: pg.atRandom.ratio,
        pgSerial: pg.serial.ratio,
        pgSerialRate: pg.serial.changesPerSecond,
      },
    };
  },
};

function goalsOf<Store extends string>(store: Store, name: string) {
  const what = `${name}, verifications for the same processor time, beside those without changes`;
  return {
    [store]: { what, unit: "×", atLeast: 0.9 },
    [`${store}Serial`]: { what: `${what}, with one caller after the other`, unit: "×", atLeast: 0.8 },
    [`${store}SerialRate`]: { what: `${name}, changes of one caller a second`, unit: "", atLeast: serialMin },
  } as Record<Store | `${Store}Serial` | `${Store}SerialRate`, Goal>;
}

async function measureStore(bench: Bench, title: string, environment: Readonly<Record<string, string>>) {
  const internalPort = await freePort();
  const server = await startLatchkey(bench, {
    environment: { ...environment, LATCHKEY_INTERNAL_PORT: `${internalPort}` },
  });
  const secrets = await server.createKeys(keysCount);
  const keyIds: string[] = [];
  for (const key of secrets) keyIds.push((await server.manage("keys.getKey", { key })).keyId as string);
  const keys = writeKeyFile(join(bench.folder, `updated-on-${title.split(" ")[0]}`), secrets);
  const load = bench.loads.manyKeys(server.port, keys, "in turn");
  const change = startChanging(bench, server, keyIds);
  await change(warmUp.perSecond, warmUp.ms);
  await load(bench.turns.warmUpMs);
  const head = `| ${title}: requests per second | median | spread | ratio | CPU µs each | CPU ratio |\n${"|---".repeat(6)}|`;
  const atRandom = await compare(bench, internalPort, load, change, atRandomMoments);
  const serial = await compare(bench, internalPort, load, change, oneAfterTheOther);
  const text = [
    head,
    line("verifications", atRandom.alone, [1, 1]),
    line("the same, beside changes", atRandom.changing, [atRandom.throughput, atRandom.ratio]),
    line(`beside ${serial.changesPerSecond.toFixed(0)} changes a second of one caller`, serial.changing, [
      serial.throughput,
      serial.ratio,
    ]),
  ];
  return { text: text.join("\n"), atRandom, serial };
}

function line(name: string, measured: readonly Slice[], ratios: readonly number[]): string {
  const rates = measured.map(perSecond);
  const cells = [median(rates).toFixed(0), `${Math.min(...rates).toFixed(0)}–${Math.max(...rates).toFixed(0)}`];
  const [throughput, cpu] = ratios.map((each) => `${each.toFixed(2)} ×`);
  return `| ${[name, ...cells, throughput, median(measured.map(cpuMicros)).toFixed(1), cpu].join(" | ")} |`;
}

/** Slices with such changes, each beside those before and after it. */
async function compare(bench: Bench, internalPort: number, load: Load, change: Change, pace: Pace) {
  const changed: Changed[] = [];
  const slices = await measureSlices(bench, internalPort, load, pace, async () => {
    changed.push(await change(pace.perSecond, pace.sliceMs));
  });
  const sumOf = (what: keyof Changed) => changed.reduce((sum, each) => sum + each[what], 0);
  if (sumOf("late") > sumOf("asked") * lateMax)
    throw new Error(`${sumOf("late")} of ${sumOf("asked")} changes came after their slices`);

  // Changes come in every second slice.
  const compared = slices.flatMap((slice, i) => {
    const [before, after] = [slices[i - 1], slices[i + 1]];
    return i % 2 === 1 && before && after ? [{ slice, alone: together(before, after) }] : [];
  });
  const changing = compared.map((each) => each.slice);
  return {
    alone: compared.map((each) => each.alone),
    changing,
    ratio: median(compared.map(({ slice, alone }) => cpuMicros(alone) / cpuMicros(slice))),
    throughput: median(compared.map(({ slice, alone }) => perSecond(slice) / perSecond(alone))),
    changesPerSecond: (sumOf("done") * 1000) / changing.reduce((sum, { ms }) => sum + ms, 0),
  };
}

/** What the server did, in all until now or in a slice of time. */
interface Slice {
  readonly verified: number;
  readonly cpuMs: number;
  readonly ms: number;
}

function together(a: Slice, b: Slice): Slice {
  return { verified: a.verified + b.verified, cpuMs: a.cpuMs + b.cpuMs, ms: a.ms + b.ms };
}

function cpuMicros({ cpuMs, verified }: Slice): number {
  return (cpuMs * 1000) / verified;
}

function perSecond({ verified, ms }: Slice): number {
  return (verified * 1000) / ms;
}

/** Slices under one load, the first and the last without changes. */
async function measureSlices(
  { turns }: Bench,
  internalPort: number,
  load: Load,
  { sliceMs, slicesPerRound }: Pace,
  change: () => Promise<void>,
) {
  const count = turns.rounds * slicesPerRound * 2 + 1;
  let isLoaded = true;
  const loading = load(turns.warmUpMs + count * sliceMs * loadedLonger).finally(() => {
    isLoaded = false;
  });
  await delay(turns.warmUpMs / 2);
  const slices: Slice[] = [];
  let before = await readDone(internalPort);
  for (let i = 0; i < count; i++) {
    await (i % 2 === 1 ? change() : delay(sliceMs));
    const now = await readDone(internalPort);
    slices.push({
      verified: now.verified - before.verified,
      cpuMs: now.cpuMs - before.cpuMs,
      ms: now.ms - before.ms,
    });
    before = now;
  }
  if (!isLoaded) throw new Error("the load ended before the last slice");
  await loading;
  return slices;
}

/** By the server's own account, which costs every slice the same. */
async function readDone(internalPort: number): Promise<Slice> {
  const printed = await readMetrics(internalPort);
  return {
    verified: sumMetric(printed, 'latchkey_verifications_total{code="VALID"}'),
    cpuMs: sumMetric(printed, "process_cpu_seconds_total") * 1000,
    ms: performance.now(),
  };
}

type Change = (perSecond: Order["perSecond"], ms: number) => Promise<Changed>;

/** What it answers changes keys for a while. Throws if changes failed. */
function startChanging(bench: Bench, { port }: Latchkey, keyIds: readonly string[]): Change {
  const script = join(import.meta.dirname, "../loads/change-keys-process.ts");
  const caller = spawn("taskset", ["-c", loadCore, process.execPath, script], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  bench.atEnd(() => void caller.kill());
  return async (perSecond, ms) => {
    const order: Order = { port, rootKey, keyIds, perSecond };
    caller.send(order);
    await delay(ms);
    const changed = await stopped(caller);
    if (changed.done < changed.asked) throw new Error(`${changed.done} of ${changed.asked} changes were made`);
    return changed;
  };
}

async function stopped(caller: ChildProcess): Promise<Changed> {
  const changed = once(caller, "message");
  caller.send("stop");
  return (await changed)[0] as Changed;
}
