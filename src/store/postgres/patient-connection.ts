import { PgConnection, type PgReply } from "./pg-connection.ts";
import type { PgServers } from "./pg-servers.ts";
import { settingsWithoutTimeouts } from "./pg-session.ts";

/** The most that Node's timers can wait. */
const anyTimeMs = 2 ** 31 - 1;

/** A connection for work that takes as long as it takes, whatever the time-outs of requests and of the role are. */
export class PatientConnection {
  readonly #connection: PgConnection;

  constructor(servers: PgServers) {
    this.#connection = new PgConnection(servers, { settings: settingsWithoutTimeouts });
  }

  /** Throws the error of the server or the connection. */
  async run(text: string, values: readonly unknown[] = []): Promise<PgReply> {
    // An attempt to connect ends by itself.
    await this.#connection.ready();
    return this.#connection.session().run({ text, values }, anyTimeMs);
  }

  /** What is under way may or may not happen. */
  close(): void {
    this.#connection.close();
  }
}
