import { execFile } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type pg from "pg";
import { LocalServer, runAs } from "./local-server.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { query } from "./run-statement.ts";

const superuser = "latchkey";

/** A database of the shared server with all migrations. Test databases are copies of it: running them takes longer. */
export const migratedDatabase = "latchkey_migrated";

/** A real Postgres of the test's own. */
export class PostgresServer extends LocalServer {
  private constructor() {
    super("postgres");
  }

  /** A new server, running. `settings` go into its configuration file. */
  static async start(settings: Record<string, string> = {}): Promise<PostgresServer> {
    const server = new PostgresServer();
    await server.#run("initdb", [
      "-D",
      server.#data,
      "-U",
      superuser,
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--no-locale",
      "--no-sync",
    ]);
    server.configure({ max_connections: "200", max_wal_senders: "8", hot_standby: "on", ...settings });
    appendFileSync(join(server.#data, "pg_hba.conf"), "host replication all 127.0.0.1/32 trust\n");
    await server.up();
    return server;
  }

  /** A streaming standby of a running server, under this name; through another port if a link lies in between. */
  static async startStandbyOf(primary: PostgresServer, name: string, port = primary.port): Promise<PostgresServer> {
    const standby = new PostgresServer();
    const source = `host=127.0.0.1 port=${port} user=${superuser} application_name=${name}`;
    await standby.#run("pg_basebackup", ["-D", standby.#data, "-d", source, "-R", "--checkpoint=fast", "--no-sync"]);
    await standby.up();
    return standby;
  }

  get #data(): string {
    return join(this.folder, "data");
  }

  url(database = "postgres", port = this.port): string {
    return `postgres://${superuser}@127.0.0.1:${port}/${database}`;
  }

  /** Makes an empty database and answers its URL. */
  async createDatabase(): Promise<string> {
    const name = `test_${process.pid}_${++databases}_${Math.trunc(performance.now())}`;
    await this.query(`CREATE DATABASE ${name}`);
    return this.url(name);
  }

  /** Runs one statement as the superuser, on a connection of its own. */
  query(text: string, database?: string): Promise<pg.QueryResult> {
    return query(this.url(database), text, 5000);
  }

  configure(settings: Record<string, string>): void {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(join(this.#data, "postgresql.conf"), lines.join(""));
  }

  /** Starts the server and resolves when it takes connections. */
  async up(): Promise<void> {
    const options = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
    const prepare = () => ["-D", this.#data, "-p", String(this.port), ...options];
    for (let tries = 0; ; tries++) {
      try {
        return await this.launch(join(postgresBinaries(), "postgres"), prepare, () => this.query("SELECT 1"));
      } catch (error) {
        // A process of the server that was killed can live a moment longer than the first one.
        if (!(error as Error).message.includes("is still in use") || tries === 50) throw error;
        await delay(100);
      }
    }
  }

  reload(): void {
    this.signal("SIGHUP");
  }

  /** Ends the server as an administrator would: connections are cut, everything is written. */
  async stop(): Promise<void> {
    this.resume();
    await this.end(() => this.signal("SIGINT"));
  }

  /** Without holding up this process: what the program talks to may be a proxy in it. */
  async #run(program: string, args: readonly string[]): Promise<void> {
    await promisify(execFile)(join(postgresBinaries(), program), args, runAs);
  }
}

let databases = 0;
