import { resolve } from "node:path";
import { isLoopback, localUrl } from "../config/hosts.ts";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import type { RunningServer } from "../server/running-server.ts";
import { rootKeyFileOf } from "../server/write-root-key.ts";
import { type Machine, reachableUrl, thisMachine } from "./reachable-url.ts";

/**
 * What a start prints for the person who started it. The lines to paste work without changes.
 *
 * Only the first start has a root key to show. It is printed to a terminal only: other output is mostly a log, which
 * is kept, copied and read by many.
 */
export function banner(
  settings: Settings,
  server: RunningServer,
  generatedRootKey: Secret | undefined,
  isTerminal: boolean,
  machine: Machine = thisMachine,
): string {
  const { host, internalHost, tls, internalTls } = settings;
  const reachable = reachableUrl(host, server.port, machine, tls?.certificate);
  const base = tls === undefined ? localUrl(host, server.port) : reachable;
  const internal = reachableUrl(internalHost, server.internalPort, machine, internalTls?.certificate);
  if (settings.role === "coordinator") {
    const address = internal.replace(/^http:\/\//, "");
    const edges = isLoopback(internalHost) ? "edges on this machine (others: set LATCHKEY_INTERNAL_HOST)" : "edges";
    return print([
      `Latchkey serves edges on ${address}`,
      `Set LATCHKEY_COORDINATORS=${address} on ${edges}; metrics on ${internal}/metrics, probes on ${base}/readyz`,
    ]);
  }
  const head = [
    `Latchkey serves JSON, gRPC, gRPC-Web and Connect on ${reachable}`,
    `${dataOf(settings)}, metrics on ${internal}/metrics, all methods at ${base}/docs`,
  ];
  if (generatedRootKey === undefined) return print(head);

  // The lines are pasted on this machine, where the file is. The full path, so that they work in every folder.
  const rootKeyFile = resolve(rootKeyFileOf(settings));
  return print([
    ...head,
    "",
    ...(isTerminal
      ? [`Root key, shown this once (it is also in ${rootKeyFile}):`, `  ${generatedRootKey.reveal()}`]
      : [`Root key: generated, in ${rootKeyFile}`]),
    "",
    "Create a key that can be used 100 times, and verify it:",
    `  KEY=$(curl -s ${base}/v1/keys.createKey -H "Authorization: Bearer $(cat ${quote(rootKeyFile)})" -H 'Content-Type: application/json' -d '{"apiId":"demo","remaining":100}' | sed 's/.*"key":"//; s/".*//')`,
    `  curl -s ${base}/v1/keys.verifyKey -H 'Content-Type: application/json' -d "{\\"key\\":\\"$KEY\\"}"`,
    "",
    "The same over gRPC:",
    `  npx @bufbuild/buf curl --protocol grpc${tls ? "" : " --http2-prior-knowledge"} -d "{\\"key\\":\\"$KEY\\"}" ${base}/latchkey.v1.KeysService/VerifyKey`,
  ]);
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}

function print(lines: readonly string[]): string {
  return `\n${lines.join("\n")}\n\n`;
}

function dataOf({ role, coordinators, databaseUrl, dataDir }: Settings): string {
  if (role === "edge") return `Data at ${coordinators.join(", ")}`;
  return `Data in ${databaseUrl ? "Postgres" : dataDir}`;
}
