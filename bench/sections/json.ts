import { askToVerify, expectAlike, startFloor } from "../contestants/floors.ts";
import { startLatchkey, vastLimit } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Section } from "../harness/section.ts";

export const json: Section<"plain" | "limited"> = {
  title: "JSON over HTTP/1.1",
  how: "One cached key, embedded store, 32 connections. The floor parses the same body and sends the same headers and as many bytes.",
  goals: {
    plain: { what: "cached key, beside bare `node:http`", unit: "×", atLeast: 0.8 },
    limited: { what: "with a local limit, beside bare `node:http`", unit: "×", atLeast: 0.78 },
  },
  async measure(bench) {
    const latchkey = await startLatchkey(bench);
    const plain = await latchkey.createKey();
    const limited = await latchkey.createKey({ ratelimit: vastLimit });
    const floor = await startFloor(bench, "http", await latchkey.verify(plain));
    await expectAlike(floor.port, latchkey.port, askToVerify(plain));
    const { table, ratio } = await compare(
      this.title,
      {
        floor: { title: "bare `node:http`", server: floor, load: bench.loads.json(floor.port, plain) },
        plain: { title: "Latchkey, cached key", server: latchkey, load: bench.loads.json(latchkey.port, plain) },
        limited: {
          title: "Latchkey, cached key with a local limit",
          server: latchkey,
          load: bench.loads.json(latchkey.port, limited),
        },
      },
      bench.turns,
    );
    return { text: [table], figures: { plain: ratio("plain", "floor"), limited: ratio("limited", "floor") } };
  },
};
