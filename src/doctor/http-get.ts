import http from "node:http";
import https from "node:https";
import type { TLSSocket } from "node:tls";
import { systemClock } from "../ambient/clock.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  readonly roundTripMs: number;
  /** The certificate of a server over TLS. */
  readonly certificate: { readonly validFrom: string; readonly validTo: string } | undefined;
}

export interface HttpGetOptions {
  readonly headers?: Record<string, string>;
  /** Certificates in PEM form that replace the ones that Node trusts. */
  readonly ca?: string | undefined;
  /** Any certificate will do: nothing secret is sent, and nothing that is read is relied on. */
  readonly isUntrusted?: boolean;
}

const timeoutMs = 5000;
const bytesMax = 16 * 2 ** 20;

/** One request on a connection of its own. Rejects with the error of the connection; `code` says which. */
export function httpGet(url: URL, { headers = {}, ca, isUntrusted = false }: HttpGetOptions = {}): Promise<HttpAnswer> {
  const isTls = url.protocol === "https:";
  return new Promise((resolve, reject) => {
    const sentMs = systemClock.monotonicMs();
    const trust = { rejectUnauthorized: !isUntrusted, ...(ca !== undefined && { ca }) };
    const request = (isTls ? https : http).get(url, { agent: false, headers, ...trust });
    const giveUp = (code: string) => request.destroy(Object.assign(new Error(code), { code }));
    const timer = setTimeout(() => giveUp("ETIMEDOUT"), timeoutMs);
    request.once("close", () => clearTimeout(timer));
    request.on("error", reject);
    request.once("response", (response) => {
      const roundTripMs = systemClock.monotonicMs() - sentMs;
      const certificate = isTls ? validityOf(response.socket as TLSSocket) : undefined;
      let text = "";
      response.setEncoding("utf8");
      response.on("error", reject);
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > bytesMax) giveUp("EMSGSIZE");
      });
      response.once("end", () => {
        const { statusCode: status = 0, headers: answered } = response;
        resolve({ status, headers: answered, text, roundTripMs, certificate });
      });
    });
  });
}

function validityOf(socket: TLSSocket): HttpAnswer["certificate"] {
  const { valid_from: validFrom, valid_to: validTo } = socket.getPeerCertificate();
  return { validFrom, validTo };
}

export function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
