import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Secret } from "../../../src/domain/secret.ts";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { DatabaseRefused } from "../../../src/store/postgres/pg-error.ts";
import { sql } from "../../../src/store/sql/sql.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { runLatchkey, startLatchkey } from "../../support/latchkey-process.ts";
import { rawClient } from "../../support/raw-client.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import { password, type SecuredPostgres, startSecuredPostgres } from "./secured-postgres.ts";

/** Does not contain the password, neither plain nor URL-encoded. */
function expectNoPassword(text: string): void {
  for (const form of [password, encodeURIComponent(password), password.slice(0, 8)]) expect(text).not.toContain(form);
}

describe.runIf(hasPostgres)("a database behind TLS and a password", () => {
  let postgres: SecuredPostgres;
  beforeAll(async () => {
    postgres = await startSecuredPostgres();
  });
  afterAll(() => postgres?.remove());

  /** How the database refuses a URL, at the first thing that is asked of it when a server starts. */
  async function refusalOf(url: string): Promise<string> {
    const server = await startTestServer({ settings: { databaseUrl: new Secret(url) }, waitUntilReady: false });
    const error = await server.ready.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(DatabaseRefused);
    const { message } = error as Error;
    expectNoPassword(message + server.logLines.join(""));
    return message;
  }

  it.each([
    ["verify-full and the right CA", "?sslmode=verify-full&sslrootcert=RIGHT"],
    ["require and the right CA", "?sslmode=require&sslrootcert=RIGHT"],
    ["require as libpq means it: encrypted, by whomever", "?sslmode=require&uselibpqcompat=true"],
  ])("is reached with %s, on every connection", async (_, options) => {
    const url = await postgres.url(options.replace("RIGHT", postgres.rightCa));
    const server = await startTestServer({ settings: { databaseUrl: new Secret(url) } });
    const client = rawClient(server).keys;
    const { key } = await client.createKey({ apiId: "api", remaining: 2 });
    expect(await client.verifyKey({ key })).toMatchObject({ valid: true, remaining: 1 });

    // The look-ups' connections and the two lanes'.
    const { rows } = await postgres.server.query(
      `SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
       WHERE a.usename = 'secured' AND a.datname = '${new URL(url).pathname.slice(1)}'`,
    );
    expect(rows.length).toBeGreaterThanOrEqual(3);
    expect(rows.every((row) => row.ssl)).toBe(true);
    expectNoPassword(server.logLines.join(""));
  });

  it.each([
    ["another CA", "?sslmode=verify-full&sslrootcert=WRONG", "the database cannot be trusted: self-signed certificate"],
    ["no CA that knows it", "?sslmode=require", "the database cannot be trusted: self-signed certificate"],
    ["no TLS", "", 'the database refuses the connection: no pg_hba.conf entry for host "127.0.0.1", user "secured"'],
    ["a CA that is not there", "?sslrootcert=/no/ca.pem", "DATABASE_URL cannot be used: ENOENT"],
  ])("is not reached with %s, and a start says why", async (_, options, why) => {
    const message = await refusalOf(await postgres.url(options.replace("WRONG", postgres.wrongCa)));
    expect(message).toContain(why);
  });

  it("is not reached under another name than its certificate's", async () => {
    const url = await postgres.url(`?sslmode=verify-full&sslrootcert=${postgres.rightCa}`);
    expect(await refusalOf(url.replace("@127.0.0.1:", "@localhost:"))).toContain(
      "does not match certificate's altnames",
    );
  });

  it.each([
    ["a wrong password", `${password}!`],
    ["no password", ""],
  ])("refuses %s, and neither serving nor migrating goes on or repeats it", async (_, wrong) => {
    const DATABASE_URL = await postgres.url(`?sslmode=verify-full&sslrootcert=${postgres.rightCa}`, wrong);
    const environment = { DATABASE_URL, LATCHKEY_DATA_DIR: tempFolder(), PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };
    for (const [title, args] of [
      ["start", ["serve"]],
      ["migrate", ["migrate", "up"]],
    ] as const) {
      const { code, stdout, stderr } = await runLatchkey(args, environment);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      const lines = stderr.trimEnd().split("\n");
      expect(lines[0]).toBe(`latchkey cannot ${title}:`);
      expect(lines.slice(1)).toEqual([expect.stringMatching(/^ {2}- the database refuses the connection: .*password/)]);
      expectNoPassword(stderr);
    }
  });

  it("is reached with a URL from a file, which is printed nowhere", async () => {
    const file = join(tempFolder(), "url");
    writeFileSync(file, `${await postgres.url(`?sslmode=verify-full&sslrootcert=${postgres.rightCa}`)}\n`);
    const latchkey = await startLatchkey({
      DATABASE_URL_FILE: file,
      LATCHKEY_DATA_DIR: tempFolder(),
      LATCHKEY_ROOT_KEY: testRootKey,
      LATCHKEY_LOG_LEVEL: "debug",
      LATCHKEY_DRAIN_MS: "0",
    });
    const client = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey }).keys;
    const { key } = await client.createKey({ apiId: "api", remaining: 1 });
    expect(await client.verifyKey({ key })).toMatchObject({ valid: true, remaining: 0 });

    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    expect(latchkey.stdout()).toContain("Data in Postgres");
    expect(latchkey.stderr()).toContain('"msg":"stopped"');
    expectNoPassword(latchkey.stdout() + latchkey.stderr());
  });

  it("answers 64-bit integers as numbers", async () => {
    const engine = openPgEngine({ url: postgres.server.url(), connectionsMax: 1 });
    onTestFinished(() => engine.close());
    const rows = await engine.read(sql`SELECT 253402300799999::bigint AS moment`);
    expect(rows).toEqual([{ moment: 253402300799999 }]);
  });
});
