import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../harness/section.ts";
import { barePort, type ServerOptions, type ServerProcess, startServer } from "./server-process.ts";

export type FloorKind = "http" | "http-threads" | "compat" | "stream" | "grpcjs";

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

/** Throws unless both send the same headers and as long a body: otherwise one of them would have less to do. */
export async function expectAlike(floorPort: number, port: number, key: string): Promise<void> {
  const [floor, other] = await Promise.all([floorPort, port].map((each) => shapeOf(each, key)));
  if (floor !== other) throw new Error(`the answers differ in shape:\n${floor}\n${other}`);
}

async function shapeOf(port: number, key: string): Promise<string> {
  const headers = { "content-type": "application/json" };
  const url = `http://127.0.0.1:${port}/v1/keys.verifyKey`;
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ key }) });
  const sent = [...response.headers].map(([name, value]) => `${name} (${value.length})`);
  return `${response.status}, ${(await response.text()).length} bytes: ${sent.sort().join(", ")}`;
}
