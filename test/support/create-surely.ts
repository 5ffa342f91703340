import { randomUUID } from "node:crypto";
import type { KeysClient } from "../../src/sdk/index.ts";

/**
 * Creates a key to begin a test with. A busy machine may take longer than the service lets a caller wait; the creation is
 * then repeated with the same idempotency key, as the answer says, so that it happens once.
 */
export async function createSurely(
  client: Pick<KeysClient, "createKey">,
  request: Parameters<KeysClient["createKey"]>[0],
): ReturnType<KeysClient["createKey"]> {
  const idempotencyKey = randomUUID();
  for (;;) {
    try {
      return await client.createKey(request, { idempotencyKey });
    } catch (error) {
      if ((error as { status?: number }).status !== 503) throw error;
    }
  }
}
