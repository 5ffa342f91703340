import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../harness/section.ts";
import { barePort, type ServerOptions, type ServerProcess, startServer } from "./server-process.ts";

export type FloorKind = "http" | "http-threads" | "given" | "compat" | "stream" | "grpcjs";

/** A server that does the least of its kind and answers these bytes. */
export function startFloor(
  bench: Bench,
  kind: FloorKind,
  answer: string | Uint8Array,
  options?: ServerOptions,
): Promise<ServerProcess> {
  const file = join(bench.folder, `answer-${kind}`);
  writeFileSync(file, answer);
  const script = join(import.meta.dirname, "floor-server.ts");
  return startServer(bench, [script, kind, file], barePort, options);
}

/** A server that answers every request with these headers and this body. */
export function startGiven(
  bench: Bench,
  answer: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
): Promise<ServerProcess> {
  return startFloor(bench, "given", JSON.stringify(answer));
}

/** Sends one request to a port. */
type Ask = (port: number) => Promise<Response>;

/** Throws unless both send the same headers and as long a body: otherwise one of them would have less to do. */
export async function expectAlike(floorPort: number, port: number, ask: Ask): Promise<void> {
  const [floor, other] = await Promise.all([floorPort, port].map(async (each) => shapeOf(await ask(each))));
  if (floor !== other) throw new Error(`the answers differ in shape:\n${floor}\n${other}`);
}

export function askToVerify(key: string): Ask {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ key });
  return (port) => fetch(`http://127.0.0.1:${port}/v1/keys.verifyKey`, { method: "POST", headers, body });
}

async function shapeOf(response: Response): Promise<string> {
  const sent = [...response.headers].map(([name, value]) => `${name} (${value.length})`);
  return `${response.status}, ${(await response.text()).length} bytes: ${sent.sort().join(", ")}`;
}
