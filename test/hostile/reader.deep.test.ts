import { describe, expect, it } from "vitest";
import { addToCorpus, readCorpus } from "./corpus.ts";
import { compareReaders } from "./reader/compare-readers.ts";
import { type Hunt, hunt } from "./reader/hunt.ts";
import { readWithOurs } from "./reader/our-reader.ts";
import { sloppyReaders } from "./reader/sloppy-readers.ts";
import { isLong, partMs, replay, seedFor, timeoutMs } from "./run-options.ts";

/* The service reads plain requests by hand. It must never take one that Node's parser, llhttp, reads differently. */

const inputsInTest = 100_000;
const inputsForControl = 30_000;
const corpus = readCorpus();
const inputs = corpus.map(({ bytes }) => bytes);

describe("the reader of plain requests", () => {
  it.each(corpus)("agrees with llhttp on $name, whole and cut off anywhere", ({ bytes }) => {
    const step = Math.ceil(bytes.length / 500);
    for (let end = bytes.length; end > 0; end -= step) {
      expect(compareReaders(bytes.subarray(0, end), readWithOurs).finding, `the first ${end} bytes`).toBeUndefined();
    }
  });

  it("agrees with llhttp on changed requests", { timeout: timeoutMs }, async () => {
    const untilMs = performance.now() + partMs(0.2, 12);
    const inputsMax = isLong ? Number.POSITIVE_INFINITY : inputsInTest;
    const found = await hunt(inputs, readWithOurs, { seed: seedFor("reader"), inputsMax, untilMs });
    console.log(`${found.inputCount} inputs, ${found.takenCount} requests taken`);
    expect(describeFinding(found)).toBe("");
    // Otherwise nothing was compared.
    expect(found.takenCount).toBeGreaterThan(found.inputCount / 20);
  });

  it.each(Object.entries(sloppyReaders))("would be found out if it %s", async (_, read) => {
    const bounds = { seed: seedFor("control"), inputsMax: inputsForControl, untilMs: Number.POSITIVE_INFINITY };
    const { finding } = await hunt(inputs, read, bounds);
    expect(finding).toBeDefined();
  });
});

function describeFinding({ finding }: Hunt): string {
  if (finding === undefined) return "";
  const kept = isLong ? `; kept as corpus/${addToCorpus(finding.bytes)}` : "";
  return `${finding.text}: ${JSON.stringify(finding.bytes.toString("latin1"))}${kept}; ${replay}`;
}
