import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { type Latchkey, rootKey, startLatchkey } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";
import type { Changed, Order } from "../loads/change-keys-process.ts";
import { loadCore } from "../loads/load-programs.ts";
import { writeKeyFile } from "../loads/wrk-scripts.ts";

const keysCount = 1000;
const updatesPerSecond = 100;
const warmUp = { perSecond: 400, ms: 5000 };
/** A difference of a few per cent has to be told from what other work on the machine does to a round. */
const moreRounds = 3;
/** The part of the changes that may come after the load, on a machine that stood still. */
const lateMax = 0.2;

export const updates: Section<"sqlite" | "pg"> = {
  title: "Changes under load",
  how: `${keysCount} cached keys verified in turn over 32 connections, once alone and once while ${updatesPerSecond} of them a second are changed by \`keys.updateKey\` (name and metadata), evenly spread. A changed key is looked up again. Before that, ${(warmUp.perSecond * warmUp.ms) / 1000} changes in ${warmUp.ms / 1000} s warm up the code of changes. The server has one core; the load and the caller of \`updateKey\` share the other, and Postgres runs on both. So the throughput also pays for the caller and the database, which are elsewhere in production: the targets go by the server's own processor time for each verification, with that of the changes.`,
  goals: {
    sqlite: {
      what: "embedded store, verifications for the same processor time, beside those without changes",
      unit: "×",
      atLeast: 0.9,
    },
    pg: {
      what: "Postgres, verifications for the same processor time, beside those without changes",
      unit: "×",
      atLeast: 0.9,
    },
  },
  async measure(bench) {
    const sqlite = await measureStore(bench, "Embedded store", {});
    const server = await PostgresServer.start();
    bench.atEnd(() => server.remove());
    const pg = await measureStore(bench, "Postgres", { DATABASE_URL: await server.createDatabase() });
    return { text: [sqlite.text, pg.text], figures: { sqlite: sqlite.ratio, pg: pg.ratio } };
  },
};

async function measureStore(bench: Bench, title: string, environment: Readonly<Record<string, string>>) {
  const server = await startLatchkey(bench, { environment });
  const secrets = await server.createKeys(keysCount);
  const keyIds: string[] = [];
  for (const key of secrets) keyIds.push((await server.manage("keys.getKey", { key })).keyId as string);
  const keys = writeKeyFile(join(bench.folder, `updated-on-${title.split(" ")[0]}`), secrets);
  const load = bench.loads.manyKeys(server.port, keys, "in turn");
  const change = startChanging(bench, server, keyIds);
  await change(warmUp.perSecond, () => delay(warmUp.ms));
  const { table, cpuRatio } = await compare(
    title,
    {
      alone: { title: "verifications", server, load },
      changing: {
        title: "the same, beside changes",
        server,
        load: (ms) => change(updatesPerSecond, () => load(ms)),
      },
    },
    { ...bench.turns, rounds: bench.turns.rounds * moreRounds },
  );
  return { text: table, ratio: cpuRatio("changing") };
}

type Change = <Result>(perSecond: number, during: () => Promise<Result>) => Promise<Result>;

/** What it answers changes keys as long as something else is done. Throws if changes failed, or did not keep their pace. */
function startChanging(bench: Bench, { port }: Latchkey, keyIds: readonly string[]): Change {
  const script = join(import.meta.dirname, "../loads/change-keys-process.ts");
  const caller = spawn("taskset", ["-c", loadCore, process.execPath, script], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  bench.atEnd(() => void caller.kill());
  return async (perSecond, during) => {
    const order: Order = { port, rootKey, keyIds, perSecond };
    caller.send(order);
    const result = await during();
    const { asked, late, done } = await stopped(caller);
    if (done < asked || late > asked * lateMax)
      throw new Error(`${done} of ${asked} changes were made, ${late} of them after the load`);
    return result;
  };
}

async function stopped(caller: ChildProcess): Promise<Changed> {
  const changed = once(caller, "message");
  caller.send("stop");
  return (await changed)[0] as Changed;
}
