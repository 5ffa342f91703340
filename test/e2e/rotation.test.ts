import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KeysClient, LatchkeyError, VerifyKeyResponse } from "../../src/sdk/index.ts";
import { surely } from "../support/create-surely.ts";
import { isDeep, sized, withRoom } from "../support/deep.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { clientOfFront } from "../support/news/fronts.ts";
import { StrictCluster } from "../support/strict/index.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { testRootKey } from "../support/test-root-key.ts";

const hourMs = 3_600_000;

type AtEnd = (undo: () => unknown) => void;

/** Where keys are verified. The first one is asked for changes. */
type Fronts = readonly [KeysClient, ...KeysClient[]];

async function startWorkers(atEnd: AtEnd): Promise<Fronts> {
  const own = {
    LATCHKEY_DATA_DIR: tempFolder(atEnd),
    LATCHKEY_ROOT_KEY: testRootKey,
    LATCHKEY_WORKERS: "2",
    LATCHKEY_USAGE_TIMEOUT_MS: "20000",
  };
  const process = await startLatchkey(own, undefined, atEnd);
  // Each has connections of its own, which workers take in turns.
  return [clientOfFront(process), clientOfFront(process), clientOfFront(process), clientOfFront(process)];
}

async function startReplicaAndEdge(atEnd: AtEnd): Promise<Fronts> {
  const databaseUrl = await createTestDatabase();
  // Neither gives up on the ledger on a busy machine: no verification may fail here.
  const cluster = await StrictCluster.start({ edges: 1, coordinators: 1, databaseUrl, patient: true, atEnd });
  const own = { DATABASE_URL: databaseUrl, LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_USAGE_TIMEOUT_MS: "20000" };
  const replica = await startLatchkey(own, undefined, atEnd);
  await cluster.untilConnected();
  return [clientOfFront(replica), clientOfFront(cluster.edge(0))];
}

const deployments = [
  { name: "two workers on the embedded store", start: startWorkers },
  ...(hasPostgres ? [{ name: "a replica and an edge on Postgres", start: startReplicaAndEdge }] : []),
];

/** One verification, and which of the key's secrets it used. */
interface Verified {
  readonly answer: VerifyKeyResponse;
  readonly generation: number;
  /** Whether the secret was valid from before the verification until after it, whatever was under way. */
  readonly wasValid: boolean;
}

/** Rerolls the key again and again while its last two secrets are verified until `isOver` says so. */
async function rerollUnderLoad(fronts: Fronts, given: object, isOver: (answers: readonly Verified[]) => boolean) {
  const [{ createKey, rerollKey }] = fronts;
  const { key, keyId } = await createKey({ apiId: "api", ...given });
  const secrets = [key];
  const verified: Verified[] = [];
  /** Verifications that a busy machine gave no answer in time: each may have spent a use. */
  let undecided = 0;
  /** Rerolls that may have happened. */
  let begun = 0;
  const verify = async (client: KeysClient, turn: number) => {
    const generation = Math.max(0, secrets.length - 1 - (turn % 2));
    try {
      const answer = await client.verifyKey({ key: secrets[generation] as string });
      verified.push({ answer, generation, wasValid: begun <= generation + 1 });
    } catch (error) {
      if ((error as LatchkeyError).code !== "SERVICE_UNAVAILABLE") throw error;
      undecided++;
    }
  };
  const callers = Array.from({ length: 12 }, async (_, i) => {
    const client = fronts[i % fronts.length] as KeysClient;
    for (let turn = i; !isOver(verified); turn++) await verify(client, turn);
  });
  const rotating = (async () => {
    while (!isOver(verified)) {
      begun++;
      secrets.push((await surely((repeated) => rerollKey({ keyId, overlap: hourMs }, repeated))).key);
    }
  })();
  await Promise.all([...callers, rotating]);
  return { keyId, secrets, verified, undecided };
}

/** Refusals of secrets that were valid all the time, but for the one that is expected once nothing is left. */
function wronglyRefused(verified: readonly Verified[], expected: string) {
  const codes = verified.filter(({ wasValid }) => wasValid).map(({ answer }) => answer.code);
  return codes.filter((code) => code !== "VALID" && code !== expected);
}

describe.each(deployments)("rotation and import, with $name", ({ start }) => {
  let fronts: Fronts;
  const undo: (() => unknown)[] = [];
  beforeAll(async () => {
    fronts = await start((step) => void undo.push(step));
  });
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });

  if (!isDeep) {
    it("rotation under load fails no verification of a valid secret, and both secrets spend one counter and one window, exactly", async () => {
      const uses = 400;
      const refusedTimes = (code: string) => (verified: readonly Verified[]) =>
        verified.filter(({ answer }) => answer.code === code).length >= 30;

      const counted = await rerollUnderLoad(fronts, { remaining: uses }, refusedTimes("USAGE_EXCEEDED"));
      expect(wronglyRefused(counted.verified, "USAGE_EXCEEDED")).toEqual([]);
      const left = counted.verified
        .filter(({ answer }) => answer.valid)
        .map(({ answer }) => answer.remaining as number);
      expect(new Set(left).size, "no use is spent twice").toBe(left.length);
      expect(Math.max(...left)).toBeLessThan(uses);
      expect(left.length + counted.undecided, "no use is lost").toBeGreaterThanOrEqual(uses);
      expect(counted.secrets.length, "rerolls during the load").toBeGreaterThan(3);
      const { version, remaining } = await fronts[0].getKey({ keyId: counted.keyId });
      expect([version, remaining]).toEqual([counted.secrets.length, 0]);

      const ratelimit = { async: false, limit: uses, duration: 24 * hourMs };
      const limited = await rerollUnderLoad(fronts, { ratelimit }, refusedTimes("RATE_LIMITED"));
      expect(wronglyRefused(limited.verified, "RATE_LIMITED")).toEqual([]);
      // A front may still have permits that it has not been asked for.
      let granted = limited.verified.filter(({ answer }) => answer.valid).length;
      const key = limited.secrets.at(-1) as string;
      while (granted + limited.undecided < uses)
        for (const front of fronts) granted += Number((await front.verifyKey({ key })).valid);
      expect(granted).toBeLessThanOrEqual(uses);
      for (const front of fronts) expect(await front.verifyKey({ key })).toMatchObject({ code: "RATE_LIMITED" });
      expect(limited.secrets.length, "rerolls during the load").toBeGreaterThan(3);

      // The last two live; the one before them is refused where it was ended.
      const codes = limited.secrets.slice(-3).map(async (key) => (await fronts[0].verifyKey({ key })).code);
      expect(await Promise.all(codes)).toEqual(["NOT_FOUND", "RATE_LIMITED", "RATE_LIMITED"]);
    });
  }

  it("an overlap ends on the dot on every front, which has the key in memory and is told nothing", async () => {
    const { key: old, keyId } = await fronts[0].createKey({ apiId: "api" });
    const { key: fresh } = await fronts[0].rerollKey({ keyId, overlap: 1500 });
    const { secrets } = await fronts[0].getKey({ keyId });
    const endMs = secrets[1]?.expires as number;
    const seen = await Promise.all(
      fronts.map(async (client) => {
        const codes = { before: new Set<string>(), after: new Set<string>() };
        for (let ended = 0; ended < 20; ) {
          const beganMs = Date.now();
          const { code } = await client.verifyKey({ key: old });
          if (Date.now() < endMs) codes.before.add(code);
          if (beganMs < endMs) continue;
          codes.after.add(code);
          ended++;
        }
        return { ...codes, fresh: (await client.verifyKey({ key: fresh })).code };
      }),
    );
    for (const { before, ...codes } of seen) {
      expect(codes).toEqual({ after: new Set(["NOT_FOUND"]), fresh: "VALID" });
      // A busy machine may not have asked before the end.
      expect(before).toEqual(
        new Set(
          sized(
            [...before].map(() => "VALID"),
            ["VALID"],
          ),
        ),
      );
    }
    expect((await fronts[0].getKey({ keyId })).secrets).toHaveLength(1);
  });

  it("imported keys are valid when the import is answered, and on every front within two seconds", async () => {
    const texts = Array.from({ length: 3 }, (_, i) => `sk_test ☂ ${i} ${"x".repeat(i * 5000)}`);
    const codesOf = async (client: KeysClient) =>
      Promise.all(texts.map(async (key) => (await client.verifyKey({ key })).code));
    // Refused without a look at the store, as long as nothing was imported.
    for (const client of fronts) expect(await codesOf(client)).toEqual(texts.map(() => "NOT_FOUND"));

    const encodings = ["hex", "base64", "base64url"] as const;
    const keys = texts.map((text, i) => {
      const digest = createHash("sha256")
        .update(text)
        .digest(encodings[i] as "hex");
      return { digest, start: text.slice(0, 7), remaining: 1000 };
    });
    const { results } = await fronts[0].importKeys({ apiId: "imported", keys });
    const importedAtMs = Date.now();
    expect(results.map(({ keyId }) => keyId)).toEqual(texts.map(() => expect.stringMatching(/^key_/)));
    expect(await codesOf(fronts[0])).toEqual(texts.map(() => "VALID"));
    for (const client of fronts) {
      while ((await codesOf(client)).includes("NOT_FOUND"))
        expect(Date.now() - importedAtMs).toBeLessThan(sized(60_000, withRoom(2000)));
    }
    const again = await fronts[0].importKeys({ apiId: "imported", keys });
    expect(again.results.map(({ error }) => error?.code)).toEqual(texts.map(() => "CONFLICT"));
    // They are keys as any other.
    const { keyId, key } = await fronts[0].rerollKey({ keyId: results[0]?.keyId as string, overlap: hourMs });
    expect(await codesOf(fronts[0])).toEqual(texts.map(() => "VALID"));
    expect(await fronts[0].verifyKey({ key })).toMatchObject({ keyId, code: "VALID" });
    expect(await fronts[0].getKey({ key: texts[0] as string })).toMatchObject({ keyId, apiId: "imported" });
  });
});
