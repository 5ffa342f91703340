/*
 * Makes keys through a Latchkey in the same host: reads their bodies by name as JSON from standard input, and prints
 * their ids and secrets by name.
 */
import { text } from "node:stream/consumers";
import { rawClient } from "../../support/raw-client.ts";
import { testRootKey } from "../../support/test-root-key.ts";

/** What `createKey` is told, but for the API. */
export type KeyBody = Record<string, unknown>;
export type MadeKeys = Record<string, { readonly keyId: string; readonly secret: string }>;

const callsAtOnce = 16;
const client = rawClient({ baseUrl: process.argv[2] ?? "", rootKey: testRootKey }).keys;
const left = Object.entries(JSON.parse(await text(process.stdin)) as Record<string, KeyBody>);
const made: MadeKeys = {};

async function work(): Promise<void> {
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [name, body] = next;
    const { key, keyId } = await client.createKey({ apiId: "lab", ...body });
    made[name] = { keyId, secret: key };
  }
}

await Promise.all(Array.from({ length: callsAtOnce }, work));
console.log(JSON.stringify(made));
