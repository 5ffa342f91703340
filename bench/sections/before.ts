import { join } from "node:path";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { type Latchkey, startLatchkey, vastCounter, vastLimit } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";
import type { Load } from "../loads/load-programs.ts";
import { writeKeyFile } from "../loads/wrk-scripts.ts";

const keyCount = 1000;
const connections = 128;
const rounds = 15;

type Kind = "plain" | "limited" | "strict" | "counted" | "countedHot" | "postgres" | "postgresHot";

/** By the name of the figure: what it is, and the load on a server. */
const kinds: Readonly<Record<Kind, { what: string; loadOf(bench: Bench, server: Latchkey): Promise<Load> }>> = {
  plain: { what: "a cached key", loadOf: oneKey({}, 32) },
  limited: { what: "a local limit", loadOf: oneKey({ ratelimit: vastLimit }, 32) },
  strict: { what: "a strict limit", loadOf: oneKey({ ratelimit: { ...vastLimit, async: false } }, 32) },
  counted: { what: `embedded store, ${keyCount} keys with \`remaining\``, loadOf: manyKeys },
  countedHot: { what: "embedded store, one key with `remaining`", loadOf: oneKey(vastCounter, connections) },
  postgres: { what: `Postgres, ${keyCount} keys with \`remaining\``, loadOf: manyKeys },
  postgresHot: { what: "Postgres, one key with `remaining`", loadOf: oneKey(vastCounter, connections) },
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
    for (const environmentOf of [async () => ({}), async () => ({ DATABASE_URL: await postgres.createDatabase() })]) {
      const earlier = await startLatchkey(bench, { program, environment: await environmentOf() });
      const now = await startLatchkey(bench, { environment: await environmentOf() });
      const isPostgres = text.length > 0;
      for (const kind of (Object.keys(kinds) as Kind[]).filter((each) => each.startsWith("postgres") === isPostgres)) {
        const { what, loadOf } = kinds[kind];
        const { table, cpuRatio } = await compare(
          what,
          {
            earlier: { title: "the earlier build", server: earlier, load: await loadOf(bench, earlier) },
            now: { title: "this one", server: now, load: await loadOf(bench, now) },
          },
          { ...bench.turns, rounds },
        );
        text.push(table);
        figures[kind] = cpuRatio("now");
      }
    }
    return { text, figures: figures as Record<Kind, number> };
  },
};

function oneKey(properties: object, connections: number) {
  return async ({ loads }: Bench, { createKey, port }: Latchkey) =>
    loads.json(port, await createKey(properties), { connections });
}

async function manyKeys({ folder, loads }: Bench, { createKeys, port }: Latchkey): Promise<Load> {
  const keys = writeKeyFile(join(folder, `keys-${port}`), await createKeys(keyCount, vastCounter));
  return loads.manyKeys(port, keys, "in turn", { connections });
}
