import { startLatchkey, vastLimit } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Section } from "../harness/section.ts";

export const strict: Section<"hot"> = {
  title: "Strict limits",
  how: "One process, embedded store, one hot key with a limit that is never reached, 32 connections.",
  goals: { hot: { what: "a hot key with a strict limit, beside one with a local limit", unit: "×", atLeast: 0.9 } },
  async measure(bench) {
    const latchkey = await startLatchkey(bench);
    const local = await latchkey.createKey({ ratelimit: vastLimit });
    const strictKey = await latchkey.createKey({ ratelimit: { ...vastLimit, async: false } });
    const { table, ratio } = await compare(
      this.title,
      {
        local: { title: "Latchkey, local limit", server: latchkey, load: bench.loads.json(latchkey.port, local) },
        strict: { title: "Latchkey, strict limit", server: latchkey, load: bench.loads.json(latchkey.port, strictKey) },
      },
      bench.turns,
    );
    return { text: [table], figures: { hot: ratio("strict", "local") } };
  },
};
