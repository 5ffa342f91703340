import http from "node:http";
import type { AddressInfo } from "node:net";
import { equalDigests, sha256 } from "../ambient/crypto.ts";
import type { Log } from "../ambient/log.ts";
import type { MetricsRegistry } from "../ambient/metrics.ts";
import type { Secret } from "../domain/secret.ts";

export interface InternalListener {
  readonly port: number;
  close(): void;
}

/** Metrics, on a listener of their own: loopback, or behind a shared secret. Rejects when the port cannot be bound. */
export function startInternalListener(options: {
  host: string;
  port: number;
  secret: Secret | undefined;
  metrics: MetricsRegistry;
  log: Log;
}): Promise<InternalListener> {
  const { host, port, secret, metrics, log } = options;
  const expected = secret && sha256(`Bearer ${secret.reveal()}`);
  const server = http.createServer((req, res) => {
    if (expected !== undefined && !equalDigests(sha256(req.headers.authorization ?? ""), expected)) {
      res.writeHead(401, { "www-authenticate": "Bearer" }).end();
    } else if (req.url !== "/metrics") {
      res.writeHead(404).end();
    } else {
      metrics.render().then(
        (text) => res.writeHead(200, { "content-type": metrics.contentType }).end(text),
        (error: unknown) => {
          log.error("the metrics could not be read", error);
          res.writeHead(500).end();
        },
      );
    }
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve({
        port: (server.address() as AddressInfo).port,
        close() {
          server.close();
          server.closeAllConnections();
        },
      });
    });
  });
}
