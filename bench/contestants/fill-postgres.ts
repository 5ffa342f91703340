import pg from "pg";
import { systemClock } from "../../src/ambient/clock.ts";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { byteLengthDefault, formatKey } from "../../src/domain/key-format.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { type KeyFile, writeKeyFile } from "../loads/wrk-scripts.ts";
import { createPlainKey, filledId } from "./fill-store.ts";

const batchSize = 20_000;

/** Fills an empty database with so many keys, as `fillStore` does for the embedded store. */
export async function fillPostgres(url: string, count: number, keysFile: string): Promise<KeyFile> {
  const random = createSystemRandom();
  const ambient = { clock: systemClock, random, metrics: createMetrics() };
  const store = await openPostgresStore({ ...ambient, url, connectionsMax: 1, lanes: 1, usageTimeoutMs: 5000 });
  const first = await createPlainKey(store);
  await store.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const copyKeys = await copyStatement(client, "keys", { digest: "n.digest", id: "n.id", start: "n.start" }, "id");
  const keys = [first.key];
  while (keys.length < count) {
    const made = Array.from({ length: Math.min(batchSize, count - keys.length) }, (_, i) => ({
      ...formatKey("live", random.bytes(byteLengthDefault)),
      id: filledId(keys.length + i),
    }));
    const values = [
      first.keyId,
      made.map(({ id }) => id),
      made.map(({ key }) => sha256(key)),
      made.map(({ start }) => start),
    ];
    await client.query(copyKeys, values);
    keys.push(...made.map(({ key }) => key));
  }
  await client.query("VACUUM ANALYZE");
  await client.query("CHECKPOINT");
  await client.end();
  return writeKeyFile(keysFile, keys);
}

/** Copies the row of one key many times, with new values for some columns. $1 key  $2 new ids  $3 new digests  $4 new starts */
async function copyStatement(
  client: pg.Client,
  table: string,
  renewed: Readonly<Record<string, string>>,
  keyColumn: string,
): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT column_name AS name FROM information_schema.columns WHERE table_name = $1",
    [table],
  );
  const columns = rows.map(({ name }) => name);
  const values = columns.map((column) => renewed[column] ?? `t.${column}`);
  return `INSERT INTO ${table} (${columns.join(", ")}) SELECT ${values.join(", ")}
    FROM ${table} t, unnest($2::text[], $3::text[], $4::text[]) AS n (id, digest, start) WHERE t.${keyColumn} = $1`;
}
