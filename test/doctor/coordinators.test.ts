import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { type Certificate, makeCertificate } from "../support/make-certificate.ts";
import { readMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";
import { healthyEnvironment, runDoctor } from "./run-doctor.ts";

const LATCHKEY_INTERNAL_SECRET = testInternalSecret;
const nowhere = "127.0.0.1:1";

async function startCoordinator(environment: Record<string, string>): Promise<LatchkeyProcess> {
  return startLatchkey({
    LATCHKEY_DATA_DIR: tempFolder(),
    LATCHKEY_ROLE: "coordinator",
    LATCHKEY_ROOT_KEY: testRootKey,
    LATCHKEY_INTERNAL_SECRET,
    ...environment,
  });
}

function internalTls({ certificate, key }: Certificate): Record<string, string> {
  return { LATCHKEY_INTERNAL_TLS_CERT: certificate, LATCHKEY_INTERNAL_TLS_KEY: key };
}

function addressOf({ internalUrl }: LatchkeyProcess): string {
  return internalUrl.replace("http://", "");
}

/** Doctor with the settings of an edge. */
function checkEdge(environment: Record<string, string>) {
  return runDoctor({ ...healthyEnvironment(), LATCHKEY_INTERNAL_SECRET, ...environment }, ["--role", "edge"]);
}

describe.runIf(hasPostgres)("latchkey doctor, of an edge and its coordinators", () => {
  it("finds nothing on either, and on the edge a wrong secret, one that is away, and one without its ledger", async () => {
    const DATABASE_URL = await createTestDatabase();
    const link = await FaultyProxy.start(Number(new URL(DATABASE_URL).port));
    const linked = new URL(DATABASE_URL);
    linked.port = String(link.port);
    const coordinator = await startCoordinator({ DATABASE_URL: linked.href });
    const LATCHKEY_COORDINATORS = addressOf(coordinator);

    const coordinatorSettings = { ...healthyEnvironment(), LATCHKEY_INTERNAL_SECRET, DATABASE_URL };
    const [edge, ofCoordinator, refused, away] = await Promise.all([
      checkEdge({ LATCHKEY_COORDINATORS }),
      runDoctor(coordinatorSettings, ["--role", "coordinator"]),
      checkEdge({ LATCHKEY_COORDINATORS, LATCHKEY_INTERNAL_SECRET: "another-secret-of-more-than-32-characters" }),
      checkEdge({ LATCHKEY_COORDINATORS: `${LATCHKEY_COORDINATORS},${nowhere}` }),
    ]);
    expect(edge).toMatchObject({ ids: [], code: 0 });
    expect(edge.checked.map(({ text }) => text).join("\n")).toMatch(/answers, \d+ ms to its ledger and back/);
    expect(ofCoordinator).toMatchObject({ ids: [], code: 0 });
    expect(refused).toMatchObject({ ids: ["coordinator-refused"], code: 1 });
    expect(refused.findings[0]?.fix).toContain("Set LATCHKEY_INTERNAL_SECRET");
    expect(away).toMatchObject({ ids: ["coordinator-unreachable"], code: 1 });
    expect(away.findings[0]).toMatchObject({
      problem: `the coordinator ${nowhere} does not answer: ECONNREFUSED`,
      fix: expect.stringContaining("latchkey serve --role coordinator"),
    });

    link.refusing = true;
    link.cutAll();
    const internalPort = Number(new URL(coordinator.internalUrl).port);
    await vi.waitFor(async () => expect(await readMetric(internalPort, "latchkey_permit_ledger_up")).toBe(0));
    const withoutLedger = await checkEdge({ LATCHKEY_COORDINATORS });
    expect(withoutLedger).toMatchObject({ ids: ["coordinator-without-ledger"], code: 1 });
    expect(withoutLedger.findings[0]?.fix).toMatch(/^latchkey doctor on that coordinator's machine/);
  });

  it("finds a coordinator that is not trusted, and one whose certificate ends soon", async () => {
    const folder = tempFolder();
    const authority = makeCertificate(folder, "authority");
    const own = makeCertificate(folder, "coordinator", authority);
    const coordinator = await startCoordinator({ DATABASE_URL: await createTestDatabase(), ...internalTls(own) });
    const LATCHKEY_COORDINATORS = `https://${addressOf(coordinator)}`;
    const ca = readFileSync(authority.certificate, "utf8");

    const [untrusted, elsewhere, soon, cleartext] = await Promise.all([
      checkEdge({ LATCHKEY_COORDINATORS }),
      checkEdge({
        LATCHKEY_COORDINATORS: LATCHKEY_COORDINATORS.replace("127.0.0.1", "localhost"),
        LATCHKEY_INTERNAL_CA: ca,
      }),
      checkEdge({ LATCHKEY_COORDINATORS, LATCHKEY_INTERNAL_CA: ca }),
      checkEdge({ LATCHKEY_COORDINATORS: addressOf(coordinator) }),
    ]);
    expect(untrusted).toMatchObject({ ids: ["coordinator-untrusted"], code: 1 });
    expect(untrusted.findings[0]?.fix).toMatch(/^LATCHKEY_INTERNAL_CA_FILE=/);
    expect(elsewhere).toMatchObject({ ids: ["coordinator-untrusted"], code: 1 });
    expect(elsewhere.findings[0]?.fix).toMatch(/^Name the coordinator in LATCHKEY_COORDINATORS as/);
    expect(soon).toMatchObject({ ids: ["certificate-ends-soon"], code: 3 });
    expect(cleartext).toMatchObject({ ids: ["coordinator-unreachable"], code: 1 });
    expect(cleartext.findings[0]?.fix).toContain("https://");
  });
});
