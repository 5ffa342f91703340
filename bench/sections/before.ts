import { join } from "node:path";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { frameOf } from "../contestants/call-grpc.ts";
import { type Latchkey, startLatchkey, vastCounter, vastLimit } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";
import type { Load } from "../loads/load-programs.ts";
import { writeKeyFile } from "../loads/wrk-scripts.ts";

const keyCount = 1000;
const connections = 128;
const rounds = 15;

type Kind =
  | ("plain" | "limited" | "strict" | "counted" | "countedHot" | "grpc")
  | ("postgres" | "postgresHot")
  | ("workersPlain" | "workersCounted" | "workersStrict");

interface Measured {
  readonly what: string;
  loadOf(bench: Bench, server: Latchkey): Promise<Load>;
}

/** By the name of the figure: what it is, and the load on a server. */
const kinds: Readonly<Record<Kind, Measured>> = {
  plain: { what: "a cached key", loadOf: oneKey({}, 32) },
  limited: { what: "a local limit", loadOf: oneKey({ ratelimit: vastLimit }, 32) },
  strict: { what: "a strict limit", loadOf: oneKey({ ratelimit: { ...vastLimit, async: false } }, 32) },
  counted: { what: `embedded store, ${keyCount} keys with \`remaining\``, loadOf: manyKeys() },
  countedHot: { what: "embedded store, one key with `remaining`", loadOf: oneKey(vastCounter, connections) },
  grpc: { what: "a cached key over gRPC", loadOf: grpcKey },
  postgres: { what: `Postgres, ${keyCount} keys with \`remaining\``, loadOf: manyKeys() },
  postgresHot: { what: "Postgres, one key with `remaining`", loadOf: oneKey(vastCounter, connections) },
  workersPlain: { what: "two workers, a cached key", loadOf: oneKey({}, 64, false) },
  workersCounted: { what: `two workers, ${keyCount} keys with \`remaining\``, loadOf: manyKeys(false) },
  workersStrict: {
    what: "two workers, a strict limit",
    loadOf: oneKey({ ratelimit: { ...vastLimit, async: false } }, 64, false),
  },
};

/** Only where it is asked for: `npm run bench -- before before=../that/checkout/dist`. */
export const before: Section<Kind> = {
  title: "Beside an earlier build",
  how: `The program and an earlier build of it, ${rounds} rounds in turn; by the server's own processor time for each verification.`,
  goals: Object.fromEntries(
    Object.entries(kinds).map(([kind, { what }]) => [kind, { what, unit: "×", atLeast: 0.95 }]),
  ) as Section<Kind>["goals"],
  async measure(bench) {
    if (bench.before === undefined) throw new Error("before=<folder> names the folder of an earlier build");
    const program = join(bench.before, "latchkey.js");
    const postgres = await PostgresServer.start();
    bench.atEnd(() => postgres.remove());
    const text: string[] = [];
    const figures: Partial<Record<Kind, number>> = {};
    const setUps: [startsWith: string, environmentOf: () => Promise<Record<string, string>>][] = [
      ["postgres", async () => ({ DATABASE_URL: await postgres.createDatabase() })],
      ["workers", async () => ({ LATCHKEY_WORKERS: "2" })],
      ["", async () => ({})],
    ];
    const left = new Set((bench.only ?? Object.keys(kinds)) as Kind[]);
    for (const [prefix, environmentOf] of setUps) {
      const chosen = [...left].filter((kind) => kind.startsWith(prefix));
      if (chosen.length === 0) continue;
      // Workers and load share all cores, as there is no core for each.
      const pinned = prefix !== "workers";
      const earlier = await startLatchkey(bench, { program, pinned, environment: await environmentOf() });
      const now = await startLatchkey(bench, { pinned, environment: await environmentOf() });
      for (const kind of chosen) {
        left.delete(kind);
        const { what, loadOf } = kinds[kind];
        const { table, cpuRatio } = await compare(
          what,
          {
            earlier: { title: "the earlier build", server: earlier, load: await loadOf(bench, earlier) },
            now: { title: "this one", server: now, load: await loadOf(bench, now) },
          },
          { ...bench.turns, rounds },
        );
        const megabytes = [earlier, now].map((server) => (server.residentBytes() / 1e6).toFixed(0));
        text.push(`${table}\n\nMemory behind it: ${megabytes[0]} and ${megabytes[1]} MB.`);
        figures[kind] = cpuRatio("now");
      }
    }
    return { text, figures: figures as Record<Kind, number> };
  },
};

function oneKey(properties: object, connections: number, pinned = true): Measured["loadOf"] {
  return async ({ loads }, { createKey, port }) =>
    loads.json(port, await createKey(properties), { connections, pinned });
}

function manyKeys(pinned = true): Measured["loadOf"] {
  return async ({ folder, loads }, { createKeys, port }) => {
    const keys = writeKeyFile(join(folder, `keys-${port}`), await createKeys(keyCount, vastCounter));
    return loads.manyKeys(port, keys, "in turn", { connections, pinned });
  };
}

async function grpcKey({ loads }: Bench, { createKey, port }: Latchkey): Promise<Load> {
  return loads.grpc(port, frameOf(await createKey()));
}
