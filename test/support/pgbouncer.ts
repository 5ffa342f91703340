import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { findOrInstall, isExecutable, maskService, pathFolders } from "./debian-programs.ts";
import { LocalServer } from "./local-server.ts";

export interface PgBouncerOptions {
  readonly mode: "session" | "transaction" | "statement";
  /** Further lines of its section `[pgbouncer]`. */
  readonly settings?: Record<string, string | number>;
}

/** A real PgBouncer of the test's own, before every database of one Postgres server that trusts all its users. */
export class PgBouncer extends LocalServer {
  readonly #url: URL;

  private constructor(url: URL) {
    super("pgbouncer");
    this.#url = url;
  }

  /** A new pooler, running. `url` names the server; its user and those in `users` may connect. */
  static async start(url: string, options: PgBouncerOptions, users: readonly string[] = []): Promise<PgBouncer> {
    const behind = new URL(url);
    const pooler = new PgBouncer(behind);
    const names = [decodeURIComponent(behind.username), ...users];
    writeFileSync(pooler.#file("users.txt"), names.map((name) => `"${name}" ""\n`).join(""));
    const prepare = () => {
      const settings = {
        listen_addr: "127.0.0.1",
        listen_port: pooler.port,
        unix_socket_dir: "",
        auth_type: "trust",
        auth_file: pooler.#file("users.txt"),
        admin_users: names[0] ?? "",
        pool_mode: options.mode,
        // Not 15 s: a server that has crashed is back at once here.
        server_login_retry: 0.1,
        ...options.settings,
      };
      const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
      const databases = `[databases]\n* = host=127.0.0.1 port=${behind.port}\n`;
      writeFileSync(pooler.#file("pgbouncer.ini"), `${databases}[pgbouncer]\n${lines.join("")}`);
      return ["-q", pooler.#file("pgbouncer.ini")];
    };
    await pooler.launch(pgbouncerBinary(), prepare, () => pooler.admin("SHOW VERSION"));
    return pooler;
  }

  /** A URL of a database behind it, through it. */
  through(url: string): string {
    const rerouted = new URL(url);
    rerouted.port = String(this.port);
    return rerouted.href;
  }

  /** Runs a command on its console, such as `RECONNECT`, which renews every connection to the server. */
  async admin(command: string): Promise<void> {
    const console = new URL(this.#url);
    console.port = String(this.port);
    console.pathname = "/pgbouncer";
    const client = new pg.Client({ connectionString: console.href, connectionTimeoutMillis: 5000 });
    client.on("error", () => {});
    await client.connect();
    try {
      await client.query(command);
    } finally {
      await client.end();
    }
  }

  #file(name: string): string {
    return join(this.folder, name);
  }
}

function pgbouncerBinary(): string {
  return findOrInstall({ name: "PgBouncer", debianPackage: "pgbouncer", find, prepare });
}

function find(): string | undefined {
  return [...pathFolders(), "/usr/sbin"].map((folder) => join(folder, "pgbouncer")).find(isExecutable);
}

/** Read by the package's own set-up: its service is started neither by the init script nor by systemd. */
function prepare(): void {
  const defaults = "/etc/default/pgbouncer";
  if (!existsSync(defaults)) writeFileSync(defaults, "START=0\n");
  maskService("pgbouncer");
}
