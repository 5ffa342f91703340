import { resolve } from "node:path";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import type { RunningServer } from "../server/start.ts";
import { rootKeyFileOf } from "../server/write-root-key.ts";

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
): string {
  const base = `http://${reachable(settings.host)}:${server.port}`;
  const metrics = `http://${reachable(settings.internalHost)}:${server.internalPort}/metrics`;
  if (settings.role === "coordinator") {
    const internal = `${reachable(settings.internalHost)}:${server.internalPort}`;
    return print([
      `Latchkey coordinates rate limits on ${internal}`,
      `Set LATCHKEY_COORDINATORS=${internal} on edges; metrics on ${metrics}, probes on ${base}/readyz`,
    ]);
  }
  const head = [
    `Latchkey serves JSON, gRPC, gRPC-Web and Connect on ${base}`,
    `Data in ${settings.databaseUrl ? "Postgres" : settings.dataDir}, metrics on ${metrics}`,
  ];
  if (generatedRootKey === undefined) return print(head);

  // The full path, so that the lines work in every folder.
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
    `  npx @bufbuild/buf curl --protocol grpc --http2-prior-knowledge -d "{\\"key\\":\\"$KEY\\"}" ${base}/latchkey.v1.KeysService/VerifyKey`,
  ]);
}

/** An address that reaches the listener, also if it is bound to all addresses. */
function reachable(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}

function print(lines: readonly string[]): string {
  return `\n${lines.join("\n")}\n\n`;
}
