import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTarget } from "../../faults/hostile/start-target.ts";
import { startLatchkey } from "../../support/latchkey-process.ts";
import { postJson } from "../../support/post-json.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import type { AttackedKeys } from "./field.ts";

/** The process that is attacked. */
export interface Victim {
  readonly pid: number;
  readonly port: number;
  readonly internalPort?: number;
  readonly attackedKeys: AttackedKeys;
  readonly honestKeys: { readonly plainKey: string; readonly countedKey: string };
  /** Resolves with the reason when the process has ended. */
  readonly ended: Promise<string>;
  /** The warnings and errors that it has logged. */
  complaints(): Promise<readonly string[]>;
  stop(): void;
}

/** In memory where there is such a folder: how busy the disk is has nothing to do with attacks. */
const dataFolder = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** `latchkey serve` as users start it, with the embedded store. */
export async function startService(environment: Record<string, string> = {}): Promise<Victim> {
  const folder = mkdtempSync(join(dataFolder, "latchkey-hostile-"));
  const settings = { LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DATA_DIR: folder, ...environment };
  const undo: (() => void)[] = [];
  const service = await startLatchkey(settings, undefined, (each) => undo.push(each));
  const port = Number(new URL(service.baseUrl).port);
  return {
    pid: service.pid,
    port,
    internalPort: Number(new URL(service.internalUrl).port),
    ...(await createKeys(port)),
    ended: service.exited.then((code) => `${code}: ${service.stderr().slice(-1500)}`),
    complaints: async () =>
      service
        .stderr()
        .split("\n")
        .filter((line) => /"level":"(warn|error)"|"level":[45]0/.test(line))
        .filter((line) => !line.includes("the store was empty: a new one was created")),
    stop() {
      for (const each of undo) each();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The public API with short time-outs, on a store in memory. */
export function startImpatient(): Promise<Victim> {
  return startTargetVictim("sound");
}

/** A control: the same with faults that must be found. */
export function startBroken(): Promise<Victim> {
  return startTargetVictim("broken");
}

async function startTargetVictim(kind: "sound" | "broken"): Promise<Victim> {
  const target = await startTarget(kind);
  return {
    pid: target.pid,
    port: target.port,
    ...(await createKeys(target.port)),
    ended: target.ended.catch((error: Error) => error.message),
    complaints: async () => (await target.state()).complaints,
    stop: target.stop,
  };
}

async function createKeys(port: number): Promise<Pick<Victim, "attackedKeys" | "honestKeys">> {
  const headers = { authorization: `Bearer ${testRootKey}` };
  const create = async (key: object) => {
    const body = { apiId: "hostile", ...key };
    const { status, text } = await postJson(`http://127.0.0.1:${port}`, "/v1/keys.createKey", body, headers);
    if (status !== 200) throw new Error(`a key could not be made: ${text}`);
    return JSON.parse(text).key as string;
  };
  const remaining = 2_000_000_000;
  return {
    attackedKeys: {
      plain: await create({}),
      counted: await create({ remaining }),
      big: await create({ meta: { big: "x".repeat(16_000) } }),
    },
    honestKeys: {
      plainKey: await create({ ownerId: "honest" }),
      countedKey: await create({ ownerId: "honest", remaining }),
    },
  };
}

export function residentBytes(pid: number): number {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    // The process has ended. That is reported elsewhere.
    return 0;
  }
}
