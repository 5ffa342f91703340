import { type Attack, type Field, repeatUntil } from "./field.ts";
import { http2Attacks } from "./http2-attacks.ts";
import { pipeline, verifyRequest } from "./pipeline.ts";

/**
 * Every kind of request, and streams that come and go. The allocator keeps memory that it once used for streams:
 * streams opened and reset take 100 MB of a bare server of Node's, which it never gives back. Memory is counted from there.
 * Pipelines are short here and no streams stay open, so that the memory of those is counted.
 */
export const warmUp: Readonly<Record<string, Attack>> = {
  "warm-up": async (field) => {
    const names = ["frames, good and bad", "streams opened and reset at once"] as const;
    const streams = names.map((name) => http2Attacks[name]?.(field) ?? []);
    return (await Promise.all([...streams, askForEverything(field)])).flat();
  },
};

function askForEverything(field: Field): Promise<readonly string[]> {
  const { plain, counted, big } = field.keys;
  return repeatUntil(field, 4, async () => {
    const problems: string[] = [];
    for (const key of [plain, counted, big, `${plain.slice(0, -1)}~`]) {
      problems.push(...(await pipeline(field.port, Buffer.from(verifyRequest(key).repeat(20)), 20)));
    }
    return problems;
  });
}
