import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import { collectDefaultMetrics, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { createMetrics, type Metrics } from "../../src/ambient/metrics.ts";
import type { Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { identityOf, makeCertificate } from "../support/make-certificate.ts";
import { readText } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";
import { pages } from "./blocks.ts";
import { documentedMetrics, exportedMetrics, type Shapes } from "./documented-metrics.ts";

const headers = { authorization: `Bearer ${testInternalSecret}` };
const internalSecrets = [new Secret(testInternalSecret)];
/** Nothing answers there. The gauges that tell so are exported all the same. */
const nowhere = "127.0.0.1:1";

/** Calls everything that is counted once, so that every label shows. The compiler asks for a new one. */
const countOnce: { readonly [Method in keyof Omit<Metrics, "gauge">]: (metrics: Metrics) => void } = {
  verified: (metrics) => metrics.verified("VALID"),
  called: (metrics) => metrics.called("KeysService/VerifyKey", "json", "OK", 0.001),
  batchCommitted: (metrics) => metrics.batchCommitted("usage", 1, 0.001),
  ledger: (metrics) => metrics.ledger("retried"),
  ledgerClockJumped: (metrics) => metrics.ledgerClockJumped("forward"),
  refillAhead: (metrics) => metrics.refillAhead(),
  keyCache: (metrics) => metrics.keyCache("hit"),
  windowsFull: (metrics) => metrics.windowsFull(),
  windowsSynced: (metrics) => metrics.windowsSynced("merged", 1),
  permits: (metrics) => metrics.permits("granted", 1),
  deniedUnsettled: (metrics) => metrics.deniedUnsettled(1),
  handshakeFailed: (metrics) => metrics.handshakeFailed("public"),
  internalRefused: (metrics) => metrics.internalRefused(),
  keyChange: (metrics) => metrics.keyChange("announced"),
  shed: (metrics) => metrics.shed("call"),
  http1Request: (metrics) => metrics.http1Request("by_hand"),
  requestRefused: (metrics) => metrics.requestRefused("NOT_FOUND"),
  servingFailed: (metrics) => metrics.servingFailed(),
  eventLoopDelayed: (metrics) => metrics.eventLoopDelayed("main", 0.001),
  rootKeyRefused: (metrics) => metrics.rootKeyRefused(),
  spans: (metrics) => metrics.spans("exported", 1),
};

/** Of metrics that may have no sample yet. */
function labelsOfProcessMetrics(): Record<string, string[]> {
  const register = new Registry();
  collectDefaultMetrics({ register });
  const metrics = register.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[];
  return Object.fromEntries(metrics.map(({ name, labelNames }) => [name, [...labelNames].sort()]));
}

async function scrape(internalPort: number): Promise<string> {
  return (await fetch(`http://127.0.0.1:${internalPort}/metrics`, { headers })).text();
}

async function scrapeTls(port: number): Promise<string> {
  const options = { host: "127.0.0.1", port, path: "/metrics", headers, rejectUnauthorized: false, agent: false };
  const [response] = (await once(https.get(options), "response")) as [IncomingMessage];
  return (await response.toArray()).join("");
}

/** The scrapes of processes that together have every part of the service. */
async function scrapeAllRoles(): Promise<Record<string, string>> {
  const inProcess = async (settings: Partial<Settings>) => {
    const { internalPort } = await startTestServer({
      settings: { internalSecrets, ...settings },
      waitUntilReady: false,
    });
    return internalPort;
  };
  const tls = { internalTls: identityOf(makeCertificate(tempFolder(), "internal")) };
  const redisUrl = new Secret(`redis://${nowhere}`);
  const databaseUrl = new Secret(`postgres://nobody@${nowhere}/none`);
  const [embedded, redis, postgres, coordinator, edge, workers] = await Promise.all([
    inProcess({}),
    inProcess({ redisUrl }),
    inProcess({ databaseUrl }),
    inProcess({ role: "coordinator", databaseUrl, ...tls }),
    inProcess({ role: "edge", coordinators: [nowhere] }),
    startLatchkey({ LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_WORKERS: "2" }),
  ]);
  return {
    embedded: await scrape(embedded),
    Redis: await scrape(redis),
    Postgres: await scrape(postgres),
    coordinator: await scrapeTls(coordinator),
    edge: await scrape(edge),
    workers: withoutWorkers(await scrape(Number(new URL(workers.internalUrl).port))),
  };
}

/** Without the label that all gauges of workers have, except where the page names it. */
function withoutWorkers(printed: string): string {
  const isNamed = (line: string) => /^latchkey_(event_loop_delay|worker)/.test(line);
  const lines = printed.split("\n").map((line) => {
    if (isNamed(line)) return line;
    return line.replace(/worker="\d+",|,?worker="\d+"/, "").replace("{}", "");
  });
  return lines.join("\n");
}

describe("docs/metrics.md", () => {
  const documented = documentedMetrics();

  it("names each metric of every role with its type and its labels, and nothing else", async () => {
    const metrics = createMetrics();
    for (const count of Object.values(countOnce)) count(metrics);
    const scrapes = { "everything counted": await metrics.render(), ...(await scrapeAllRoles()) };
    expect(differences(documented, Object.values(scrapes))).toEqual([]);
    for (const [role, printed] of Object.entries(scrapes)) {
      const contradictions = differences(documented, [printed]).filter((text) => !text.endsWith(notExported));
      expect(contradictions, role).toEqual([]);
    }
  });

  it("would be found out if it were wrong", () => {
    const page = readText("docs/metrics.md");
    const printed = printAsDocumented(documented);
    expect(differences(documented, [printed])).toEqual([]);
    const wrong: readonly (readonly [text: string, instead: string, difference: RegExp])[] = [
      ["| `latchkey_calls_waiting` |", "| `latchkey_calls_waits` |", /^latchkey_calls_waiting is not documented$/],
      ["| `latchkey_calls_waiting` |", "| `latchkey_calls_waits` |", /^latchkey_calls_waits is not exported$/],
      [
        "| `latchkey_cached_keys` | gauge |",
        "| `latchkey_cached_keys` | counter |",
        /^latchkey_cached_keys is a gauge/,
      ],
      [
        "| `method`, `protocol`, `code` |",
        "| `method`, `code` |",
        /^latchkey_call_seconds has the labels code,method,p/,
      ],
      ["| gauge | `address` |", "| gauge | |", /^latchkey_coordinator_up has the labels address/],
      ["| counter | | Charges", "| counter | `key` | Charges", /^latchkey_refills_ahead_total has the labels none/],
    ];
    for (const [text, instead, difference] of wrong) {
      const changed = page.replace(text, instead);
      expect(changed).not.toBe(page);
      const found = differences(documentedMetrics(changed), [printed]);
      expect(found).toContainEqual(expect.stringMatching(difference));
    }
  });

  it.each([...pages, "CHANGELOG.md"])("%s names no metric that is not there", (page) => {
    const named = Array.from(readText(page).matchAll(/`(latchkey_\w+?)(_bucket|_sum|_count)?(\{[^}]*\})?`/g));
    const unknown = named.map(([, name = ""]) => name).filter((name) => !(name in documented));
    expect(unknown).toEqual([]);
  });
});

/** The scrape of an exporter that is as the page says. */
function printAsDocumented(documented: Shapes): string {
  return Object.entries(documented)
    .map(([name, { type, labels }]) => {
      const sample = labels.map((label) => `${label}="a"`).join();
      return `# TYPE ${name} ${type}\n${name}{${sample}} 1\n`;
    })
    .join("\n");
}

const notExported = "is not exported";

/** What the page says that the scrapes together do not, and the other way round. */
function differences(documented: Shapes, printed: readonly string[]): string[] {
  const exported = printed.map(exportedMetrics);
  const ofProcess = labelsOfProcessMetrics();
  const names = new Set([...Object.keys(documented), ...exported.flatMap((shapes) => Object.keys(shapes))]);
  return [...names].flatMap((name) => {
    const page = documented[name];
    const found = exported.flatMap((shapes) => shapes[name] ?? []);
    const [first] = found;
    if (page === undefined) return `${name} is not documented`;
    if (first === undefined) return `${name} ${notExported}`;
    if (first.type !== page.type) return `${name} is a ${first.type}`;
    const labelSets = found.flatMap(({ labels }) => (labels === undefined ? [] : [String(labels)]));
    if (ofProcess[name] !== undefined) labelSets.push(String(ofProcess[name]));
    const other = labelSets.find((labels) => labels !== String(page.labels));
    return other === undefined ? [] : `${name} has the labels ${other || "none"}`;
  });
}
