import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { substitute } from "../support/documented-configuration.ts";
import { bash, readSteps } from "../support/documented-steps.ts";
import { userEnvironment } from "../support/installed-package.ts";
import { freePort } from "../support/local-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { keptVersions, neighbours, unpackArtefact } from "../upgrade/kept-versions.ts";

/** A folder with both versions in it, as installed, in which one replica runs. */
interface Machine {
  readonly folder: string;
  readonly baseUrl: string;
}

async function prepareMachine(databaseUrl: string, oldProgram: string): Promise<Machine> {
  const folder = tempFolder();
  for (const [name, program] of Object.entries({ old: oldProgram, new: builtProgram() })) {
    mkdirSync(join(folder, name, "node_modules/.bin"), { recursive: true });
    symlinkSync(program, join(folder, name, "node_modules/.bin/latchkey"));
  }
  const [port, internalPort] = [await freePort(), await freePort()];
  const settings = {
    DATABASE_URL: databaseUrl,
    LATCHKEY_ROOT_KEY: testRootKey,
    PORT: port,
    LATCHKEY_INTERNAL_PORT: internalPort,
    LATCHKEY_USAGE_TIMEOUT_MS: 20_000,
    LATCHKEY_DRAIN_MS: 0,
    // Fewer than the files that a process may open on any machine, for `doctor`.
    LATCHKEY_CONNECTIONS_MAX: 500,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(folder, "replica.env"), lines.join(""), { mode: 0o600 });
  // Nothing runs yet: a process that has ended.
  await bash(folder, "true & echo $! > replica.pid; wait");
  atTestEnd(() => {
    try {
      process.kill(Number(readFileSync(join(folder, "replica.pid"), "utf8")), "SIGKILL");
    } catch {
      // It has ended.
    }
  });
  return { folder, baseUrl: `http://127.0.0.1:${port}` };
}

const scripts = readSteps("Upgrading").map(({ script }) => script);
const [backUp, check, migrate, replace, askOld] = scripts as [string, string, string, string, string];
const stop = 'kill "$(cat replica.pid)"\ntail --pid="$(cat replica.pid)" -s 0.1 -f /dev/null\n';
const withOld = { "new/node_modules": "old/node_modules" };

/** Two machines with replicas of the old version, and a way to follow the steps on one of them. */
async function setUp(oldProgram: string) {
  expect(scripts).toHaveLength(5);
  const databaseUrl = await createEmptyDatabase();
  const { hostname, port, username, pathname } = new URL(databaseUrl);
  const address = { PGHOST: hostname, PGPORT: port, PGUSER: username, PGDATABASE: pathname.slice(1) };
  const env = { PATH: userEnvironment.PATH, HOME: tempFolder(), ...address };
  const follow = ({ folder, baseUrl }: Machine, script: string, also: Record<string, string> = {}) => {
    const local = { ...(script.includes("curl") && { "http://127.0.0.1:8080": baseUrl }), ...also };
    return bash(folder, substitute(script, local), { env });
  };
  const machines = [await prepareMachine(databaseUrl, oldProgram), await prepareMachine(databaseUrl, oldProgram)];
  await Promise.all(machines.map((machine) => follow(machine, replace, { ...withOld, [stop]: "" })));
  const caller = await Caller.start(machines.map(({ baseUrl }) => baseUrl));
  const [first] = machines as [Machine];
  await follow(first, backUp);
  expect(await bash(first.folder, "pg_restore --list before-upgrade.dump", { env })).toContain(
    "TABLE DATA public keys",
  );
  return { machines, first, caller, follow };
}

describe.runIf(hasPostgres)("an upgrade as docs/operations.md describes it", () => {
  it("goes from the newest release to this version, with every use counted once", async () => {
    const { machines, first, caller, follow } = await setUp(
      unpackArtefact(keptVersions.at(-1) as string, tempFolder()),
    );
    const asked = await follow(first, check).catch(({ stdout }: { stdout: string }) => stdout);
    expect(asked).toContain("latchkey migrate up");
    expect(asked).not.toMatch(/^(problem|error)/m);
    await caller.without(
      machines.map(({ baseUrl }) => baseUrl),
      async () => {
        for (const { folder } of machines) await bash(folder, stop);
        expect(await follow(first, migrate)).toMatch(/^applied/);
        for (const machine of machines) await follow(machine, replace, { [stop]: "" });
      },
    );
    for (const { baseUrl } of machines) await caller.untilAnswered(baseUrl);
    await expect(follow(first, askOld)).rejects.toThrow("the data was written by a newer version");
    expect(await caller.stop()).toEqual({ failures: [], counted: usesMax });
  });

  it.each(neighbours)(
    "goes from $name to this version and back, one replica at a time, with every call answered and every use counted once",
    async ({ unpack }) => {
      const { machines, first, caller, follow } = await setUp(unpack(tempFolder()));
      // It exits with 0 only where it finds nothing that is wrong.
      expect(await follow(first, check)).toContain("postgres     the schema");
      expect(await follow(first, migrate)).toMatch(/^(applied|nothing to apply)/);
      for (const machine of machines) await caller.without([machine.baseUrl], () => follow(machine, replace));
      for (const { baseUrl } of machines) await caller.untilAnswered(baseUrl);

      expect(await follow(first, askOld)).toMatch(/^has {4}0001-first$/m);
      await caller.without([first.baseUrl], () => follow(first, replace, withOld));
      await caller.untilAnswered(first.baseUrl);
      expect(await caller.stop()).toEqual({ failures: [], counted: usesMax });
    },
  );
});

const usesMax = 1_000_000;

/** Verifies all the time at every replica that a balancer would ask, and counts. */
class Caller {
  readonly #key: string;
  readonly #answered = new Map<string, number>();
  readonly #asked: Set<string>;
  readonly #failures: string[] = [];
  readonly #running: Promise<void>;
  #isStopping = false;
  /** Calls that are under way. */
  #round = Promise.resolve();

  private constructor(key: string, baseUrls: readonly string[]) {
    this.#key = key;
    this.#asked = new Set(baseUrls);
    this.#running = this.#call();
  }

  static async start(baseUrls: readonly string[]): Promise<Caller> {
    const client = rawClient({ baseUrl: baseUrls[0] as string, rootKey: testRootKey });
    const { key } = await client.keys.createKey({ apiId: "api", remaining: usesMax });
    return new Caller(key, baseUrls);
  }

  /** Meanwhile a balancer sends nothing there, because it is not ready. */
  async without(baseUrls: readonly string[], act: () => Promise<unknown>): Promise<void> {
    for (const baseUrl of baseUrls) this.#asked.delete(baseUrl);
    await this.#round;
    await act();
    for (const baseUrl of baseUrls) this.#asked.add(baseUrl);
  }

  /** Resolves when this replica has answered once more. */
  async untilAnswered(baseUrl: string): Promise<void> {
    const before = this.#answered.get(baseUrl) ?? 0;
    while ((this.#answered.get(baseUrl) ?? 0) === before && this.#failures.length === 0) await delay(5);
  }

  async stop() {
    this.#isStopping = true;
    await this.#running;
    const [baseUrl = ""] = this.#asked;
    const { remaining = 0 } = await rawClient({ baseUrl, rootKey: testRootKey }).keys.getKey({ key: this.#key });
    const passed = [...this.#answered.values()].reduce((sum, count) => sum + count, 0);
    return { failures: this.#failures, counted: passed + remaining };
  }

  async #call(): Promise<void> {
    while (!this.#isStopping) {
      this.#round = this.#callEach([...this.#asked]);
      await this.#round;
      await delay(20);
    }
  }

  async #callEach(baseUrls: readonly string[]): Promise<void> {
    for (const baseUrl of baseUrls) {
      try {
        const { code } = await rawClient({ baseUrl }).keys.verifyKey({ key: this.#key });
        if (code === "VALID") this.#answered.set(baseUrl, (this.#answered.get(baseUrl) ?? 0) + 1);
        else this.#failures.push(code);
      } catch (error) {
        this.#failures.push(String(error));
      }
    }
  }
}
