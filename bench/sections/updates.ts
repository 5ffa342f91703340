import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { type Latchkey, startLatchkey } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";
import type { Load } from "../loads/load-programs.ts";
import { writeKeyFile } from "../loads/wrk-scripts.ts";

const keysCount = 1000;
const updatesPerSecond = 100;

export const updates: Section<"sqlite" | "pg"> = {
  title: "Changes under load",
  how: `${keysCount} cached keys verified in turn over 32 connections, once alone and once while ${updatesPerSecond} of them a second are changed by \`keys.updateKey\` (name and metadata), evenly spread. A changed key is looked up again. The load and the caller of \`updateKey\` share one core, the server has the other.`,
  goals: {
    sqlite: { what: "embedded store, verifications beside those without changes", unit: "×", atLeast: 0.9 },
    pg: { what: "Postgres, verifications beside those without changes", unit: "×", atLeast: 0.9 },
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
  const ids: string[] = [];
  for (const key of secrets) ids.push((await server.manage("keys.getKey", { key })).keyId as string);
  const keys = writeKeyFile(join(bench.folder, `updated-on-${title.split(" ")[0]}`), secrets);
  const load = bench.loads.manyKeys(server.port, keys, "in turn");
  const { table, ratio } = await compare(
    title,
    {
      alone: { title: "verifications", server, load },
      changing: { title: "the same, beside changes", server, load: besideUpdates(server, ids, load) },
    },
    bench.turns,
  );
  return { text: table, ratio: ratio("changing", "alone") };
}

/** Changes keys while the load runs. Throws if the changes did not keep their pace. */
function besideUpdates(server: Latchkey, ids: readonly string[], load: Load): Load {
  let changed = 0;
  const change = (n: number) =>
    server.manage("keys.updateKey", { keyId: ids[n % ids.length], name: `name ${n}`, meta: { n } });
  return async (ms) => {
    const startedMs = performance.now();
    const before = changed;
    let isOver = false;
    const changing = (async () => {
      while (!isOver) {
        const due = before + Math.floor(((performance.now() - startedMs) * updatesPerSecond) / 1000);
        await Promise.all(Array.from({ length: Math.max(0, due - changed) }, () => change(changed++)));
        await delay(10);
      }
    })();
    const served = await load(ms);
    isOver = true;
    await changing;
    const perSecond = ((changed - before) * 1000) / (performance.now() - startedMs);
    if (perSecond < updatesPerSecond * 0.9) throw new Error(`only ${perSecond.toFixed(0)} changes a second were made`);
    return served;
  };
}
