import { join } from "node:path";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { startLatchkey, vastCounter, verify } from "../contestants/latchkey.ts";
import { barePort, startServer } from "../contestants/server-process.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";
import { writeKeyFile } from "../loads/wrk-scripts.ts";

const keyCount = 1000;
const connections = 128;

export const counted: Section<"sqlite" | "postgres" | "hot"> = {
  title: "Keys with `remaining`",
  how: `${keyCount} keys in turn, or one, ${connections} connections; every use is on disk before it is answered. Beside Latchkey on Postgres, a thin \`node:http\` server with one prepared UPDATE … RETURNING per request over a pool of 12. All settings are the defaults (\`LATCHKEY_USAGE_TIMEOUT_MS\` is 235). Postgres is not pinned.`,
  goals: {
    sqlite: { what: `embedded store, ${keyCount} keys, beside a key without counter`, unit: "×", atLeast: 0.6 },
    postgres: { what: `Postgres, ${keyCount} keys, beside one UPDATE per request`, unit: "×", atLeast: 2 },
    hot: { what: "Postgres, one hot key, beside one UPDATE per request", unit: "×", atLeast: 3.5 },
  },
  async measure(bench) {
    const embedded = await compareEmbedded(bench);
    const onPostgres = await compareOnPostgres(bench);
    return {
      text: [embedded.table, onPostgres.table],
      figures: {
        sqlite: embedded.ratio("counted", "plain"),
        postgres: onPostgres.ratio("batched", "oneByOne"),
        hot: onPostgres.ratio("batchedHot", "oneByOneHot"),
      },
    };
  },
};

async function compareEmbedded(bench: Bench) {
  const latchkey = await startLatchkey(bench);
  const plain = await latchkey.createKey();
  const keys = writeKeyFile(join(bench.folder, "embedded-keys"), await latchkey.createKeys(keyCount, vastCounter));
  const options = { connections };
  const { json, manyKeys } = bench.loads;
  return compare(
    "Embedded store",
    {
      plain: { title: "a key without counter", server: latchkey, load: json(latchkey.port, plain, options) },
      counted: {
        title: `${keyCount} counted keys`,
        server: latchkey,
        load: manyKeys(latchkey.port, keys, "in turn", options),
      },
    },
    bench.turns,
  );
}

async function compareOnPostgres(bench: Bench) {
  const postgres = await PostgresServer.start();
  bench.atEnd(() => postgres.remove());
  const databaseUrl = await postgres.createDatabase();
  const latchkey = await startLatchkey(bench, { environment: { DATABASE_URL: databaseUrl } });
  const list = await latchkey.createKeys(keyCount, vastCounter);
  const [hot] = list as [string];
  const keys = writeKeyFile(join(bench.folder, "postgres-keys"), list);
  const script = join(import.meta.dirname, "../contestants/update-per-request-server.ts");
  const oneByOne = await startServer(bench, [script, databaseUrl], barePort);
  for (const { port } of [oneByOne, latchkey]) await verify(port, hot);
  const spread = ({ port }: { port: number }) => bench.loads.manyKeys(port, keys, "in turn", { connections });
  const onOne = ({ port }: { port: number }) => bench.loads.json(port, hot, { connections });
  return compare(
    "Postgres",
    {
      oneByOne: { title: `one UPDATE per request, ${keyCount} keys`, server: oneByOne, load: spread(oneByOne) },
      batched: { title: `Latchkey, ${keyCount} keys`, server: latchkey, load: spread(latchkey) },
      oneByOneHot: { title: "one UPDATE per request, one hot key", server: oneByOne, load: onOne(oneByOne) },
      batchedHot: { title: "Latchkey, one hot key", server: latchkey, load: onOne(latchkey) },
    },
    bench.turns,
  );
}
