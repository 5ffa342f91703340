import { setTimeout as delay } from "node:timers/promises";
import { FaultyProxy } from "./faulty-proxy.ts";
import { PostgresServer } from "./postgres-server.ts";
import { atTestEnd } from "./test-end.ts";

const standbyName = "standby1";

/** A primary and its standby, with one address that leads to the current primary. Removed with the test. */
export class StandbyPair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** The way from the primary to the standby. */
  readonly link: FaultyProxy;
  /** The way to the primary. */
  readonly address: FaultyProxy;

  private constructor(primary: PostgresServer, standby: PostgresServer, link: FaultyProxy, address: FaultyProxy) {
    this.primary = primary;
    this.standby = standby;
    this.link = link;
    this.address = address;
  }

  static async start(replication: "synchronous" | "asynchronous"): Promise<StandbyPair> {
    const primary = await PostgresServer.start();
    atTestEnd(() => primary.remove());
    const link = await FaultyProxy.start(primary.port);
    const standby = await PostgresServer.startStandbyOf(primary, standbyName, link.port);
    atTestEnd(() => standby.remove());
    if (replication === "synchronous") {
      await primary.query(`ALTER SYSTEM SET synchronous_standby_names = '${standbyName}'`);
      primary.reload();
      await until(primary, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
    }
    return new StandbyPair(primary, standby, link, await FaultyProxy.start(primary.port));
  }

  get url(): string {
    return this.primary.url(undefined, this.address.port);
  }

  /** Makes the standby the primary, and lets the address lead to it. */
  async promote(): Promise<void> {
    await this.standby.query("SELECT pg_promote(false)");
    await until(this.standby, "SELECT 1 WHERE NOT pg_is_in_recovery()");
    this.address.targetPort = this.standby.port;
    this.address.cutAll();
  }
}

async function until(server: PostgresServer, condition: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    // A standby cancels queries that are in the way of what it applies.
    const found = await server.query(condition).catch(() => undefined);
    if (found?.rows.length === 1) return;
    await delay(50);
  }
  throw new Error(`it never came to: ${condition}`);
}
