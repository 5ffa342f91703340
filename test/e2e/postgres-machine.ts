import { chownSync, existsSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { bash } from "../support/documented-steps.ts";
import { childrenOf, freePort, runAs, signal } from "../support/local-server.ts";
import { postgresBinaries } from "../support/postgres-binaries.ts";
import { atTestEnd } from "../support/test-end.ts";

const password = "password";

/**
 * A machine on which an administrator runs Postgres by commands: `PGDATA` is its data folder, and `psql` reaches its
 * server. Its server is not a child of the test: it is ended with the test, by the id in its own file.
 */
export class PostgresMachine {
  readonly port: number;
  readonly #folder: string;

  private constructor(port: number) {
    this.port = port;
    this.#folder = mkdtempSync(join(tmpdir(), "latchkey-postgres-machine-"));
    if (runAs.uid !== undefined) chownSync(this.#folder, runAs.uid, runAs.gid);
  }

  /** Without a data folder yet. Removed with the test. */
  static async create(): Promise<PostgresMachine> {
    const machine = new PostgresMachine(await freePort());
    atTestEnd(async () => {
      await machine.kill();
      rmSync(machine.#folder, { recursive: true, force: true });
    });
    return machine;
  }

  /** Runs commands as the user whom Postgres runs as, and answers what they print. */
  run(script: string): Promise<string> {
    const env = {
      PATH: [postgresBinaries(), process.env.PATH].join(delimiter),
      PGDATA: this.#data,
      PGHOST: "127.0.0.1",
      PGPORT: String(this.port),
      PGUSER: "postgres",
      PGPASSWORD: password,
    };
    return bash(this.#folder, script, { env, ...runAs });
  }

  /** A running server with this role and database, both of the same name. */
  async install(role: string): Promise<void> {
    await this.run(`
      initdb -U postgres -A scram-sha-256 --pwfile=<(echo ${password}) -E UTF8 --no-locale --no-sync
      echo "listen_addresses = '127.0.0.1'" >> "$PGDATA/postgresql.conf"
      echo "unix_socket_directories = ''" >> "$PGDATA/postgresql.conf"
      echo "max_connections = 200" >> "$PGDATA/postgresql.conf"`);
    await this.boot();
    await this.run(
      `psql -c "CREATE ROLE ${role} LOGIN PASSWORD '${password}'" -c "CREATE DATABASE ${role} OWNER ${role}"`,
    );
  }

  /** Starts the server with whatever is in its data folder, as a machine does that boots. */
  async boot(): Promise<void> {
    await this.run('pg_ctl -l "$PGDATA.log" -w start');
  }

  url(login: string): string {
    return `postgres://${login}:${password}@127.0.0.1:${this.port}/${login}`;
  }

  /** Ends every process of the server at once, as the loss of the machine does. */
  async kill(): Promise<void> {
    const pids = this.#pids();
    for (const pid of pids) signal(pid, "SIGKILL");
    while (pids.some(isRunning)) await delay(5);
    // After a reboot no process has that id.
    rmSync(this.#pidFile, { force: true });
  }

  /** Stops every process of the server from running: its port accepts connections and is silent. */
  pause(): void {
    for (const pid of this.#pids()) signal(pid, "SIGSTOP");
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  get #pidFile(): string {
    return join(this.#data, "postmaster.pid");
  }

  #pids(): number[] {
    if (!existsSync(this.#pidFile)) return [];
    const pid = Number(readFileSync(this.#pidFile, "utf8").split("\n")[0]);
    // A file that was left behind may name another process by now.
    if (!isRunning(pid) || !readlinkSync(`/proc/${pid}/cwd`).startsWith(this.#folder)) return [];
    return [pid, ...childrenOf(pid)];
  }
}

/** A process that has ended may be known to the system until its parent asks for it. */
function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
  } catch {
    return false;
  }
}
