import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { postgresBinaries } from "./postgres-binaries.ts";

const nobody = 65_534;
/** Postgres refuses to run as root. */
const runAs = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
const superuser = "latchkey";
const startMs = 30_000;

/** A real Postgres of the test's own: a temporary folder, a free loopback port, an unprivileged user. */
export class PostgresServer {
  readonly port: number;
  readonly #folder: string;
  #process: ChildProcess | undefined;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.port = port;
  }

  /** A new server, running. `settings` go into its configuration file. */
  static async start(settings: Record<string, string> = {}): Promise<PostgresServer> {
    const server = await PostgresServer.#create();
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
    const standby = await PostgresServer.#create();
    const source = `host=127.0.0.1 port=${port} user=${superuser} application_name=${name}`;
    await standby.#run("pg_basebackup", ["-D", standby.#data, "-d", source, "-R", "--checkpoint=fast", "--no-sync"]);
    await standby.up();
    return standby;
  }

  static async #create(): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-postgres-"));
    if (runAs.uid !== undefined) chownSync(folder, runAs.uid, runAs.gid);
    return new PostgresServer(folder, await freePort());
  }

  get #data(): string {
    return join(this.#folder, "data");
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
  async query(text: string, database?: string): Promise<pg.QueryResult> {
    const client = new pg.Client({ connectionString: this.url(database), connectionTimeoutMillis: 5000 });
    client.on("error", () => {});
    await client.connect();
    try {
      return await client.query(text);
    } finally {
      await client.end();
    }
  }

  configure(settings: Record<string, string>): void {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(join(this.#data, "postgresql.conf"), lines.join(""));
  }

  /** Starts the server and resolves when it takes connections. */
  async up(): Promise<void> {
    const options = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
    const child = spawn(join(postgresBinaries(), "postgres"), ["-D", this.#data, "-p", String(this.port), ...options], {
      ...runAs,
      stdio: ["ignore", "ignore", "pipe"],
    });
    let log = "";
    child.stderr.on("data", (chunk) => {
      log = (log + chunk).slice(-20_000);
    });
    this.#process = child;
    const deadline = performance.now() + startMs;
    for (;;) {
      if (child.exitCode !== null || performance.now() > deadline) throw new Error(`Postgres did not start:\n${log}`);
      const answers = await this.query("SELECT 1").then(
        () => true,
        () => false,
      );
      if (answers) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  reload(): void {
    this.#process?.kill("SIGHUP");
  }

  /** Ends every process of the server at once, as a crash of the machine would. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    for (const pid of [child.pid, ...childrenOf(child.pid)]) signal(pid, "SIGKILL");
    await exited;
  }

  /** Stops every process of the server from running, or lets them go on: it holds its connections and says nothing. */
  pause(): void {
    this.#signalAll("SIGSTOP");
  }

  resume(): void {
    this.#signalAll("SIGCONT");
  }

  /** Ends the server as an administrator would: connections are cut, everything is written. */
  async stop(): Promise<void> {
    const child = this.#process;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    this.resume();
    const exited = once(child, "exit");
    child.kill("SIGINT");
    await exited;
  }

  /** Stops the server and removes its folder. */
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Without holding up this process: what the program talks to may be a proxy in it. */
  async #run(program: string, args: readonly string[]): Promise<void> {
    mkdirSync(this.#folder, { recursive: true });
    await promisify(execFile)(join(postgresBinaries(), program), args, runAs);
  }

  #signalAll(name: NodeJS.Signals): void {
    const pid = this.#process?.pid;
    if (pid !== undefined) for (const each of [pid, ...childrenOf(pid)]) signal(each, name);
  }
}

let databases = 0;

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Postgres' processes are all children of the first. */
function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1]) === parent;
      } catch {
        return false;
      }
    });
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone already.
  }
}
