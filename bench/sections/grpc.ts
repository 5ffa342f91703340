import { hotMethods } from "../../gen/latchkey/v1/keys_hot.ts";
import { callGrpc, frameOf } from "../contestants/call-grpc.ts";
import { startFloor } from "../contestants/floors.ts";
import { startLatchkey, vastLimit } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Section } from "../harness/section.ts";

export const grpc: Section<"compat" | "grpcJs"> = {
  title: "gRPC",
  how: "One cached key, embedded store, 4 connections with 16 streams each. The floors read the frame and answer the same bytes; the handler of `@grpc/grpc-js` is given and gives bytes, so it spends nothing on Protobuf.",
  goals: {
    compat: { what: "cached key, beside bare `node:http2` (compatibility API)", unit: "×", atLeast: 0.75 },
    grpcJs: { what: "cached key, beside a `@grpc/grpc-js` server", unit: "×", atLeast: 1.25 },
  },
  async measure(bench) {
    const latchkey = await startLatchkey(bench);
    const plain = await latchkey.createKey();
    const limited = await latchkey.createKey({ ratelimit: vastLimit });
    const answer = hotMethods[0]?.encodeFrame(JSON.parse(await latchkey.verify(plain))) as Buffer;
    const [compat, stream, grpcJs] = [
      await startFloor(bench, "compat", answer),
      await startFloor(bench, "stream", answer),
      await startFloor(bench, "grpcjs", answer),
    ];
    for (const { port } of [compat, stream, grpcJs, latchkey]) {
      const { length } = await callGrpc(port, frameOf(plain));
      if (length !== answer.length) throw new Error(`an answer has ${length} bytes instead of ${answer.length}`);
    }
    const loadOn = (server: { port: number }, key = plain) => bench.loads.grpc(server.port, frameOf(key));
    const { table, ratio } = await compare(
      this.title,
      {
        compat: { title: "bare `node:http2`, compatibility API", server: compat, load: loadOn(compat) },
        stream: { title: "bare `node:http2`, stream API", server: stream, load: loadOn(stream) },
        grpcJs: { title: "`@grpc/grpc-js` server, trivial handler", server: grpcJs, load: loadOn(grpcJs) },
        plain: { title: "Latchkey, cached key", server: latchkey, load: loadOn(latchkey) },
        limited: {
          title: "Latchkey, cached key with a local limit",
          server: latchkey,
          load: loadOn(latchkey, limited),
        },
      },
      bench.turns,
    );
    return { text: [table], figures: { compat: ratio("plain", "compat"), grpcJs: ratio("plain", "grpcJs") } };
  },
};
