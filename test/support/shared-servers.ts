import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../src/ambient/clock.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { migratedDatabase, PostgresServer } from "./postgres-server.ts";
import { RedisServer } from "./redis-server.ts";

const redisDatabases = 10_000;

/**
 * The one Postgres and the one Redis of a run. They live in the process that starts the tests. A test file asks for an
 * address over HTTP; the first question starts the server.
 */
export class SharedServers {
  readonly #http: Server;
  #postgres: Promise<PostgresServer> | undefined;
  #redis: Promise<RedisServer> | undefined;
  #redisDatabase = 0;

  private constructor() {
    this.#http = createServer((request, response) => {
      this.#answer(request.url ?? "").then(
        (url) => response.end(url),
        (error) => response.writeHead(500).end(String(error)),
      );
    });
  }

  static async listen(): Promise<SharedServers> {
    const servers = new SharedServers();
    servers.#http.listen(0, "127.0.0.1");
    await once(servers.#http, "listening");
    return servers;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#http.close();
    this.#http.closeAllConnections();
    // One that did not start was reported to the test that asked for it.
    const started = await Promise.allSettled([this.#postgres, this.#redis]);
    await Promise.all(started.map((server) => server.status === "fulfilled" && server.value?.remove()));
  }

  async #answer(path: string): Promise<string> {
    if (path === "/postgres") {
      this.#postgres ??= startPostgres();
      return (await this.#postgres).url();
    }
    if (path !== "/redis") throw new Error(`nothing is shared at ${path}`);
    this.#redis ??= RedisServer.start({ databases: String(redisDatabases) });
    const server = await this.#redis;
    this.#redisDatabase++;
    return server.url(this.#redisDatabase);
  }
}

async function startPostgres(): Promise<PostgresServer> {
  const server = await PostgresServer.start();
  await server.query(`CREATE DATABASE ${migratedDatabase}`);
  const store = await openPostgresStore({
    clock: systemClock,
    random: createSystemRandom(),
    metrics: createMetrics(),
    url: server.url(migratedDatabase),
    connectionsMax: 1,
    lanes: 1,
    usageTimeoutMs: 20_000,
  });
  await store.close();
  return server;
}
