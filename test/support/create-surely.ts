import { randomUUID } from "node:crypto";
import type { KeysClient } from "../../src/sdk/index.ts";

/**
 * Does something to begin a test with. A busy machine may take longer than the service lets a caller wait; the call is then
 * repeated with the same idempotency key, as the answer says, so that it happens once.
 */
export async function surely<Answer>(call: (repeated: { idempotencyKey: string }) => Promise<Answer>): Promise<Answer> {
  const idempotencyKey = randomUUID();
  for (;;) {
    try {
      return await call({ idempotencyKey });
    } catch (error) {
      if ((error as { status?: number }).status !== 503) throw error;
    }
  }
}

/** Creates a key to begin a test with. */
export function createSurely(
  client: Pick<KeysClient, "createKey">,
  request: Parameters<KeysClient["createKey"]>[0],
): ReturnType<KeysClient["createKey"]> {
  return surely((repeated) => client.createKey(request, repeated));
}
