import type { LatchkeyClient } from "../../gen/latchkey/v1/client.ts";

/** The API that the documented configurations of proxies are for. */
export const guardedApi = "demo";

export interface RefusedKey {
  readonly code: string;
  readonly status: 401 | 403 | 429;
  readonly key: string;
  /** Absent where answers must not tell it. */
  readonly keyId?: string;
}

/** A key for each code with which `verifyKey` refuses, if it asks for `guardedApi` and for the permission docs.read. */
export async function createRefusedKeys({ keys }: Pick<LatchkeyClient, "keys">): Promise<RefusedKey[]> {
  const create = (fields: object) => keys.createKey({ apiId: guardedApi, permissions: ["docs.read"], ...fields });
  const limited = await create({ ratelimit: { limit: 1, duration: 600_000 } });
  await keys.verifyKey({ key: limited.key });
  const expired = await create({ expires: Date.now() + 250 });
  // Refused as soon as it has expired; asking takes nothing that others have.
  while ((await keys.verifyKey({ key: expired.key })).valid);
  return [
    { code: "NOT_FOUND", status: 401, key: "not-a-key" },
    { code: "FORBIDDEN", status: 403, key: (await create({ apiId: "another" })).key },
    { code: "DISABLED", status: 401, ...(await create({ enabled: false })) },
    { code: "EXPIRED", status: 401, ...expired },
    { code: "INSUFFICIENT_PERMISSIONS", status: 403, ...(await create({ permissions: ["docs.write"] })) },
    { code: "RATE_LIMITED", status: 429, ...limited },
    { code: "USAGE_EXCEEDED", status: 429, ...(await create({ remaining: 0 })) },
  ];
}
