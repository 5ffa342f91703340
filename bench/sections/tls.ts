import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import { makeCertificate } from "../../test/support/make-certificate.ts";
import { frameOf } from "../contestants/call-grpc.ts";
import { rootKey, startLatchkey } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Section } from "../harness/section.ts";

export const tls: Section<"json" | "grpc" | "handshakes"> = {
  title: "TLS",
  how: "One cached key, embedded store, TLS 1.3 with a P-256 certificate. JSON on 32 connections that stay open, gRPC on 4 with 16 streams each, and JSON with a new connection for each request.",
  goals: {
    json: { what: "JSON over TLS, beside cleartext", unit: "×" },
    grpc: { what: "gRPC over TLS, beside cleartext", unit: "×" },
    handshakes: { what: "a new TLS connection for each request, beside a new one in cleartext", unit: "×" },
  },
  async measure(bench) {
    const { certificate, key } = makeCertificate(bench.folder, "port");
    const files = { LATCHKEY_TLS_CERT: certificate, LATCHKEY_TLS_KEY: key };
    const clear = await startLatchkey(bench);
    const secured = await startLatchkey(bench, { environment: files });
    const [plainKey, securedKey] = [await clear.createKey(), await createKeyOverTls(secured.port)];
    const closing = { tls: true, closing: true };
    const { json, grpc } = bench.loads;
    const { table, ratio } = await compare(
      this.title,
      {
        json: { title: "JSON, cleartext", server: clear, load: json(clear.port, plainKey) },
        jsonTls: { title: "JSON, TLS", server: secured, load: json(secured.port, securedKey, { tls: true }) },
        grpc: { title: "gRPC, cleartext", server: clear, load: grpc(clear.port, frameOf(plainKey)) },
        grpcTls: {
          title: "gRPC, TLS",
          server: secured,
          load: grpc(secured.port, frameOf(securedKey), { tls: true }),
        },
        opening: {
          title: "JSON, a new connection each, cleartext",
          server: clear,
          load: json(clear.port, plainKey, { closing: true }),
        },
        openingTls: {
          title: "JSON, a new connection each, TLS",
          server: secured,
          load: json(secured.port, securedKey, closing),
        },
      },
      bench.turns,
    );
    return {
      text: [table],
      figures: {
        json: ratio("jsonTls", "json"),
        grpc: ratio("grpcTls", "grpc"),
        handshakes: ratio("openingTls", "opening"),
      },
    };
  },
};

async function createKeyOverTls(port: number): Promise<string> {
  const headers = { authorization: `Bearer ${rootKey}`, "content-type": "application/json" };
  const address = { host: "127.0.0.1", port, path: "/v1/keys.createKey", method: "POST" };
  const req = https.request({ ...address, headers, rejectUnauthorized: false, agent: false });
  req.end(JSON.stringify({ apiId: "bench", prefix: "live" }));
  const [res] = (await once(req, "response")) as [IncomingMessage];
  return (JSON.parse((await res.toArray()).join("")) as { key: string }).key;
}
