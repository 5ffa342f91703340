import { createHash, randomUUID } from "node:crypto";
import type { CreateKeyRequest, LatchkeyClient } from "../../gen/latchkey/v1/client.ts";
import { rawClient } from "../support/raw-client.ts";
import { settles } from "../support/settles.ts";
import { testRootKey } from "../support/test-root-key.ts";

const apiId = "side-by-side";
const callsEach = 40;
/** Only to end a wait that would never end. */
const patienceMs = 20_000;

/** Several processes that have to be one service: each function describes where they are not. */
export class Fronts {
  readonly #clients: readonly LatchkeyClient[];
  readonly #isShared: boolean;

  /** `isShared: false` for a control: each has a ledger of its own, and every key is made in each of them. */
  constructor(baseUrls: readonly string[], isShared = true) {
    this.#clients = baseUrls.map((baseUrl) => rawClient({ baseUrl, rootKey: testRootKey, timeoutMs: patienceMs }));
    this.#isShared = isShared;
  }

  /** A counter is spent from all sides at once: neither more nor less than it has. */
  async spendCounter(): Promise<string[]> {
    const problems: string[] = [];
    for (const maker of this.#clients) {
      const uses = callsEach + 10;
      const { key } = await this.#createKey(maker, { remaining: uses });
      const codes = await this.#verifyEverywhere(key);
      const passed = codes.filter((code) => code === "VALID").length;
      const others = codes.filter((code) => code !== "VALID" && code !== "USAGE_EXCEEDED");
      if (passed !== uses || others.length > 0) problems.push(`${passed} of ${uses} uses passed; ${others.join(" ")}`);
    }
    return problems;
  }

  /** The same with a strict limit, of which no more may pass, and which is not refused to all. */
  async exhaustStrictLimit(): Promise<string[]> {
    const problems: string[] = [];
    for (const maker of this.#clients) {
      const limit = callsEach - 10;
      const { key } = await this.#createKey(maker, { ratelimit: { async: false, limit, duration: 3_600_000 } });
      const codes = await this.#verifyEverywhere(key);
      const passed = codes.filter((code) => code === "VALID").length;
      const others = codes.filter((code) => code !== "VALID" && code !== "RATE_LIMITED");
      if (passed > limit || passed === 0 || others.length > 0) {
        problems.push(`${passed} passed a limit of ${limit}; ${others.join(" ")}`);
      }
    }
    return problems;
  }

  /** Whatever is changed or deleted at one of them is so at all others, which remember the key. */
  async changeKeys(): Promise<string[]> {
    const problems: string[] = [];
    for (const maker of this.#clients) {
      const { key, keyId } = await this.#createKey(maker, {});
      const becomes = (code: string) =>
        Promise.all(
          this.#clients.map((client) =>
            settles(
              async () => (await client.keys.verifyKey({ key })).code,
              code,
              this.#isShared ? patienceMs : 0,
            ).catch((error: Error) => problems.push(error.message)),
          ),
        );
      await becomes("VALID");
      await maker.keys.updateKey({ keyId, enabled: false });
      await becomes("DISABLED");
      await maker.keys.updateKey({ keyId, enabled: true });
      await becomes("VALID");
      await maker.keys.deleteKey({ keyId });
      await becomes("NOT_FOUND");
    }
    return problems;
  }

  async #createKey(maker: LatchkeyClient, properties: Omit<CreateKeyRequest, "apiId">) {
    if (this.#isShared) return maker.keys.createKey({ apiId, ...properties });
    const key = randomUUID();
    const digest = createHash("sha256").update(key).digest("hex");
    const imports = this.#clients.map(async (client) => {
      const { results = [] } = await client.keys.importKeys({ apiId, keys: [{ digest, ...properties }] });
      return { client, keyId: results[0]?.keyId ?? "" };
    });
    const keyId = (await Promise.all(imports)).find(({ client }) => client === maker)?.keyId ?? "";
    return { key, keyId };
  }

  async #verifyEverywhere(key: string): Promise<string[]> {
    const calls = this.#clients.flatMap(({ keys }) => Array.from({ length: callsEach }, () => keys.verifyKey({ key })));
    return (await Promise.all(calls)).map(({ code }) => code);
  }
}
