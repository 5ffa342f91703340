import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { readText } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";

const shortRootKey = "s3cr3t-but-short";

/** The lines that a refused start prints. The test fails if it starts, hangs, or prints a stack trace. */
async function refusalOf(environment: Record<string, string>, args = ["serve"]): Promise<string[]> {
  const ports = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };
  const { code, stdout, stderr } = await runLatchkey(args, { ...ports, ...environment });
  expect(code).toBe(1);
  expect(stdout).toBe("");
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(stderr).not.toContain(shortRootKey);
  // A start that is refused later than that has created a store, and the next one does not say so.
  const lines = stderr
    .trimEnd()
    .split("\n")
    .filter((line) => !line.includes("a new one was created"));
  const [title, ...problems] = lines;
  expect(title).toBe(`latchkey cannot ${args[0] === "serve" ? "start" : "back up"}:`);
  return problems.map((line) => line.replace(/^ {2}- /, ""));
}

/** Never connected to: the settings are wrong already. */
const nowhere = "postgres://127.0.0.1:1/nowhere";

async function takenPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return (server.address() as { port: number }).port;
}

// The embedded store only. For Postgres, see test/cli/migrate.test.ts and test/store/postgres.
describe("a start that fails", () => {
  it("lists all problems at once: settings and a folder in use", async () => {
    const dataDir = tempFolder();
    const served = await startLatchkey({ LATCHKEY_DATA_DIR: dataDir });

    const problems = await refusalOf({ LATCHKEY_DATA_DIR: dataDir, PORT: "x", LATCHKEY_ROOT_KEY: shortRootKey });
    expect(problems).toEqual([
      "PORT must be a whole number from 0 to 65535",
      expect.stringMatching(/^LATCHKEY_ROOT_KEY must be at least 32 characters/),
      `the data folder ${dataDir} is in use by another process`,
    ]);
    expect(await refusalOf({ LATCHKEY_DATA_DIR: dataDir })).toEqual([
      `the data folder ${dataDir} is in use by another process`,
    ]);
    expect((await fetch(`${served.baseUrl}/readyz`)).status).toBe(200);
  });

  it("names the address that is taken", async () => {
    const port = await takenPort();

    const refusals = await Promise.all([
      refusalOf({ LATCHKEY_DATA_DIR: tempFolder(), PORT: `${port}` }),
      refusalOf({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_INTERNAL_PORT: `${port}` }),
    ]);
    for (const problems of refusals)
      expect(problems).toEqual([
        `127.0.0.1:${port} is in use by another process; PORT and LATCHKEY_INTERNAL_PORT set others`,
      ]);
  });

  it("says that a data folder cannot be made or written to", async () => {
    const file = join(tempFolder(), "a-file");
    writeFileSync(file, "");

    expect(await refusalOf({ LATCHKEY_DATA_DIR: join(file, "below") })).toEqual([
      `the data folder ${join(file, "below")} cannot be made: ENOTDIR`,
    ]);
    const lockIsAFolder = tempFolder();
    mkdirSync(join(lockIsAFolder, "latchkey.lock"));
    expect(await refusalOf({ LATCHKEY_DATA_DIR: lockIsAFolder })).toEqual([
      expect.stringMatching(/^the data folder .* cannot be written to: /),
    ]);
  });

  it.runIf(hasPostgres)("says that a generated root key cannot be written, before it counts", async () => {
    const folder = tempFolder();
    const [file, DATABASE_URL] = [join(folder, "a-file"), await createEmptyDatabase()];
    writeFileSync(file, "");

    expect(await refusalOf({ LATCHKEY_DATA_DIR: join(file, "below"), DATABASE_URL })).toEqual([
      `the generated root key cannot be written to ${join(file, "below")}: ENOTDIR`,
    ]);
    const latchkey = await startLatchkey({ LATCHKEY_DATA_DIR: folder, DATABASE_URL });
    expect(latchkey.stdout()).toContain(`Root key: generated, in ${join(folder, "root-key-postgres")}`);
  });

  it("says that a data file is not a database", async () => {
    const dataDir = tempFolder();
    writeFileSync(join(dataDir, "latchkey.db"), "this was a database before somebody edited it by hand".repeat(100));

    expect(await refusalOf({ LATCHKEY_DATA_DIR: dataDir })).toEqual([expect.stringContaining("not a database")]);
  });

  it.each([
    ["an address of another machine", { HOST: "192.0.2.1" }, ["this machine has no address 192.0.2.1"]],
    [
      "a Redis whose address is none",
      { REDIS_URL: `:${shortRootKey}@127.0.0.1` },
      [expect.stringContaining("REDIS_URL must be a URL such as redis://user:password@host:6379, redis+cluster://")],
    ],
    [
      "an internal listener that other machines can reach",
      { LATCHKEY_INTERNAL_HOST: "0.0.0.0" },
      [
        expect.stringContaining("LATCHKEY_INTERNAL_HOST must be a loopback address unless LATCHKEY_INTERNAL_SECRET"),
        "LATCHKEY_INTERNAL_HOST must be a loopback address unless the internal port speaks TLS " +
          "(set LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY) or its network is private " +
          "(set LATCHKEY_INTERNAL_PRIVATE=1): the shared secret would be sent in cleartext",
      ],
    ],
    [
      "a certificate and a key that are not there",
      { LATCHKEY_INTERNAL_TLS_CERT: "/nowhere/cert.pem", LATCHKEY_INTERNAL_TLS_KEY: "/nowhere/key.pem" },
      [
        "LATCHKEY_INTERNAL_TLS_CERT names a file that cannot be read: ENOENT",
        "LATCHKEY_INTERNAL_TLS_KEY names a file that cannot be read: ENOENT",
      ],
    ],
    [
      "an edge that has a database and a root key, but neither coordinators nor their secret",
      { LATCHKEY_ROLE: "edge", DATABASE_URL: nowhere, LATCHKEY_ROOT_KEY: testRootKey },
      [
        "LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_TLS_CERT must be set where the role is edge: it shows one of them to coordinators",
        "LATCHKEY_COORDINATORS must name at least one coordinator where the role is edge",
        "DATABASE_URL must not be set where the role is edge: only its coordinators reach the database",
        "LATCHKEY_ROOT_KEY must not be set where the role is edge: its coordinators check root keys",
      ],
    ],
    [
      "a coordinator that has no database",
      { LATCHKEY_ROLE: "coordinator", LATCHKEY_INTERNAL_SECRET: testInternalSecret },
      ["DATABASE_URL must be set where the role is coordinator: the embedded store serves one process"],
    ],
    [
      "coordinators without the role edge",
      { LATCHKEY_COORDINATORS: "127.0.0.1:8081" },
      [expect.stringContaining("LATCHKEY_COORDINATORS must not be set unless the role is edge")],
    ],
    [
      "coordinators without a port",
      {
        LATCHKEY_ROLE: "edge",
        LATCHKEY_INTERNAL_SECRET: testInternalSecret,
        LATCHKEY_COORDINATORS: "127.0.0.1,127.0.0.2",
      },
      [expect.stringContaining("LATCHKEY_COORDINATORS must be addresses such as 10.0.0.1:8081")],
    ],
    ["a role that there is not", { LATCHKEY_ROLE: "replica" }, ["LATCHKEY_ROLE must be one of all, edge, coordinator"]],
  ])("is one with %s", async (_, environment, problems) => {
    expect(await refusalOf({ LATCHKEY_DATA_DIR: tempFolder(), ...environment })).toEqual(problems);
  });
});

describe("a role on the command line", () => {
  it("counts instead of the environment's", async () => {
    const refused = (role: string, environment: Record<string, string>) =>
      refusalOf({ LATCHKEY_DATA_DIR: tempFolder(), ...environment }, ["serve", "--role", role]);

    expect(await refused("edge", { LATCHKEY_ROLE: "all", LATCHKEY_INTERNAL_SECRET: testInternalSecret })).toEqual([
      "LATCHKEY_COORDINATORS must name at least one coordinator where the role is edge",
    ]);
    expect(await refused("replica", {})).toEqual(["LATCHKEY_ROLE must be one of all, edge, coordinator"]);
  });
});

describe("an unknown setting", () => {
  it("gets a warning with its name, without its value", async () => {
    const latchkey = await startLatchkey({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_SURPRISE: shortRootKey });

    expect(latchkey.stderr()).toMatch(/"level":"warn".*LATCHKEY_SURPRISE is not a setting of Latchkey/);
    expect(latchkey.stderr()).not.toContain(shortRootKey);
  });
});

describe("the command line", () => {
  it("answers an unknown command with what tells its usage", async () => {
    const unknown = [
      ...["sevre", "serve 8080", "--prot 80", "serve --port=80", "backup", "backup one two"],
      ...["migrate --role edge", "migrate up --role all", "backup --role edge file", "serve --role"],
    ];
    const runs = unknown.map((line) => runLatchkey(line.split(" "), { LATCHKEY_DATA_DIR: tempFolder() }));

    for (const { code, stdout, stderr } of await Promise.all(runs)) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(/^.+\nlatchkey( serve| backup| migrate)? --help tells how it is used\n$/);
      expect(stderr).not.toMatch(/^\s+at /m);
    }
  });

  it("prints its version and its usage when asked to, even with bad settings", async () => {
    const broken = { PORT: "x" };
    const { version } = JSON.parse(readText("package.json")) as { version: string };

    expect(await runLatchkey(["--version"], broken)).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
    for (const { code, stdout, stderr } of await Promise.all(
      ["--help", "-h"].map((flag) => runLatchkey([flag], broken)),
    )) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(/^Usage: latchkey/);
    }
  });
});
