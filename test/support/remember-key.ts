import type { KeysClient } from "../../src/sdk/index.ts";
import { settles } from "./settles.ts";

/**
 * Has every replica look the key up, without using it: asked for another API, it is refused before it is counted. On a
 * busy machine the look-up may take longer than the service lets a caller wait; from memory it is answered at once.
 */
export async function rememberKey(clients: readonly KeysClient[], key: string): Promise<void> {
  const ask = (client: KeysClient) =>
    client.verifyKey({ key, apiId: "another" }).then(
      ({ code }) => code as string,
      (error: Error) => error.message,
    );
  await Promise.all(clients.map((client) => settles(() => ask(client), "FORBIDDEN", 20_000)));
}
