import type { KeysClient } from "../../src/sdk/index.ts";

/** A key without a counter. What its callers were told must be true after any crash. */
export interface OtherKey {
  readonly keyId: string;
  readonly key: string;
  state: "there" | "being deleted" | "deleted";
}

/** Keys that are created and deleted while crashes happen. A call that fails leaves its outcome open. */
export class OtherKeys {
  readonly all: OtherKey[] = [];

  async createOne(client: KeysClient): Promise<void> {
    this.all.push({ ...(await client.createKey({ apiId: "api" })), state: "there" });
  }

  async deleteOne(client: KeysClient, other: OtherKey | undefined): Promise<void> {
    if (other === undefined) return;
    other.state = "being deleted";
    await client.deleteKey({ keyId: other.keyId });
    other.state = "deleted";
  }

  /** Every second of those that are there, to be deleted: there must be some left in the end, too. */
  halfOfThose(): OtherKey[] {
    return this.all.filter(({ state }) => state === "there").filter((_, i) => i % 2 === 0);
  }

  count(state: OtherKey["state"]): number {
    return this.all.filter((other) => other.state === state).length;
  }

  /** Keys whose state differs from what their callers were told. */
  async wrong(client: KeysClient): Promise<OtherKey[]> {
    const wrong: OtherKey[] = [];
    for (let i = 0; i < this.all.length; i += 50) {
      const some = this.all.slice(i, i + 50).filter(({ state }) => state !== "being deleted");
      const answers = await Promise.all(some.map(({ key }) => client.verifyKey({ key })));
      wrong.push(...some.filter(({ state }, j) => answers[j]?.code !== (state === "there" ? "VALID" : "NOT_FOUND")));
    }
    return wrong;
  }
}
