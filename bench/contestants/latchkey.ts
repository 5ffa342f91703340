import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { postJson } from "../../test/support/post-json.ts";
import { buildProgram } from "../../tools/build.ts";
import type { Bench } from "../harness/section.ts";
import { type ServerOptions, type ServerProcess, startServer } from "./server-process.ts";

export interface Latchkey extends ServerProcess {
  createKey(properties?: object): Promise<string>;
  createKeys(count: number, properties?: object): Promise<string[]>;
  /** The answer to one verification, as text. Throws if it is not a valid one. */
  verify(key: string): Promise<string>;
  /** Calls a method with the root key, such as `keys.updateKey`. */
  manage(method: string, body: object): Promise<Record<string, unknown>>;
}

export interface LatchkeyOptions extends ServerOptions {
  /** Of V8, in front of the script. */
  readonly nodeArgs?: readonly string[];
  /** Instead of the program of this checkout. */
  readonly program?: string;
}

const dist = join(import.meta.dirname, "../../dist");
export const rootKey = "root-key-of-the-bench-0123456789abcdef";

/** Limits that no load reaches, so that everything is admitted. */
export const vastLimit = { limit: 2_147_483_647, duration: 86_400_000 };
export const vastCounter = { remaining: 2_147_483_647 };

let built: Promise<unknown> | undefined;

/** The measured program: the one that ships. Built at its first use. */
export async function builtProgram(): Promise<string> {
  built ??= buildProgram(dist);
  await built;
  return join(dist, "latchkey.js");
}

/** The real program, with an embedded store of its own unless the environment says otherwise. */
export async function startLatchkey(
  bench: Pick<Bench, "folder" | "profile" | "atEnd">,
  options: LatchkeyOptions = {},
): Promise<Latchkey> {
  const profile = bench.profile ? ["--cpu-prof", "--cpu-prof-dir=profiles"] : [];
  const args = [...profile, ...(options.nodeArgs ?? []), options.program ?? (await builtProgram()), "serve"];
  const environment = {
    PORT: "0",
    LATCHKEY_INTERNAL_PORT: "0",
    LATCHKEY_DATA_DIR: mkdtempSync(join(bench.folder, "data-")),
    LATCHKEY_ROOT_KEY: rootKey,
    // A key that is looked up again now and then would not be from memory.
    LATCHKEY_CACHE_TTL_MS: "86400000",
    LATCHKEY_DRAIN_MS: "0",
    // All of a server's threads share one core.
    LATCHKEY_WORKERS: "1",
    ...options.environment,
  };
  const server = await startServer(bench, args, servingPort, { ...options, environment });
  const createKey = async (properties: object = {}) => {
    const body = { apiId: "bench", prefix: "live", ...properties };
    return JSON.parse(await post(server.port, "/v1/keys.createKey", body)).key as string;
  };
  return {
    ...server,
    createKey,
    async createKeys(count, properties) {
      const keys: string[] = [];
      while (keys.length < count) {
        const missing = Math.min(50, count - keys.length);
        keys.push(...(await Promise.all(Array.from({ length: missing }, () => createKey(properties)))));
      }
      return keys;
    },
    verify: (key) => verify(server.port, key),
    manage: async (method, body) => JSON.parse(await post(server.port, `/v1/${method}`, body)),
  };
}

/** One verification, of any contestant. A contestant with another answer does not do the work that is compared. */
export async function verify(port: number, key: string): Promise<string> {
  const text = await post(port, "/v1/keys.verifyKey", { key });
  if (JSON.parse(text).valid !== true) throw new Error(`a key was not valid: ${text}`);
  return text;
}

function servingPort(line: string): number | undefined {
  return line.includes('"msg":"serving"') ? (JSON.parse(line).port as number) : undefined;
}

async function post(port: number, path: string, body: object): Promise<string> {
  const authorization = { authorization: `Bearer ${rootKey}` };
  const { status, text } = await postJson(`http://127.0.0.1:${port}`, path, body, authorization);
  if (status !== 200) throw new Error(`${path} answered ${status}: ${text}`);
  return text;
}
