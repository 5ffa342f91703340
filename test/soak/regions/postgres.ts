import { execFile } from "node:child_process";
import { appendFileSync, chownSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type pg from "pg";
import { LocalServer, runAs } from "../../support/local-server.ts";
import { makeCertificate } from "../../support/make-certificate.ts";
import { postgresBinaries } from "../../support/postgres-binaries.ts";
import { query } from "../../support/run-statement.ts";
import type { Network } from "./network.ts";

/** How processes of the lab prove to Postgres who they are. Each takes more round trips than the one before. */
export const logins = ["trust", "password", "tls"] as const;
export type Login = (typeof logins)[number];

const port = 5432;
const superuser = "latchkey";
const password = "password-of-the-lab";
const addresses = "10.98.0.0/24";

/**
 * A real Postgres inside a host. Every login works at the same time: which one is used is said by the URL. The test's own
 * process is in no host, and reaches it by its Unix socket.
 */
export class LabPostgres extends LocalServer {
  readonly #network: Network;
  readonly #host: string;

  private constructor(network: Network, host: string) {
    super("lab", port);
    this.#network = network;
    this.#host = host;
  }

  static async start(network: Network, host: string): Promise<LabPostgres> {
    const server = new LabPostgres(network, host);
    try {
      await server.#init();
      await server.#up();
      await server.query(`CREATE ROLE ${superuser}_password SUPERUSER LOGIN PASSWORD '${password}'`, "postgres");
      await server.query(`CREATE ROLE ${superuser}_tls SUPERUSER LOGIN PASSWORD '${password}'`, "postgres");
      await server.query("CREATE DATABASE latchkey", "postgres");
      return server;
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  /** For processes inside hosts. */
  url(login: Login): string {
    const place = `${this.#network.addressOf(this.#host)}:${port}/latchkey`;
    if (login === "trust") return `postgres://${superuser}@${place}`;
    const secured = `postgres://${superuser}_${login}:${password}@${place}`;
    // The certificate's signer is not checked: that costs no round trip, and round trips are what matters here.
    return login === "tls" ? `${secured}?sslmode=no-verify` : secured;
  }

  query(text: string, database = "latchkey"): Promise<pg.QueryResult> {
    return query(`postgres:///${database}?host=${this.folder}&port=${port}&user=${superuser}`, text, 5000);
  }

  get #data(): string {
    return join(this.folder, "data");
  }

  async #init(): Promise<void> {
    const options = ["-U", superuser, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
    await promisify(execFile)(join(postgresBinaries(), "initdb"), ["-D", this.#data, ...options], runAs);
    const { certificate, key } = makeCertificate(this.folder, "postgres");
    for (const file of [certificate, key]) chownSync(file, runAs.uid ?? 0, runAs.gid ?? 0);
    const settings = { max_connections: "200", ssl: "on", ssl_cert_file: certificate, ssl_key_file: key };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(join(this.#data, "postgresql.conf"), lines.join(""));
    const rules = [
      `hostnossl all ${superuser} ${addresses} trust`,
      `hostnossl all ${superuser}_password ${addresses} scram-sha-256`,
      `hostssl all ${superuser}_tls ${addresses} scram-sha-256`,
    ];
    appendFileSync(join(this.#data, "pg_hba.conf"), `${rules.join("\n")}\n`);
  }

  async #up(): Promise<void> {
    const listen = `listen_addresses=${this.#network.addressOf(this.#host)}`;
    const options = ["-c", listen, "-c", `unix_socket_directories=${this.folder}`];
    const args = ["-D", this.#data, "-p", String(port), ...options];
    const command = this.#network.inside(this.#host, join(postgresBinaries(), "postgres"), args, runAs);
    // Only root may enter a host. The command itself takes the unprivileged user then.
    await this.launch(
      command[0],
      () => command.slice(1),
      () => this.query("SELECT 1", "postgres"),
      command[0],
      {},
    );
  }
}
