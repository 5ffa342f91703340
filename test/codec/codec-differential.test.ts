import { describe, expect, it } from "vitest";
import { hotMethods } from "../../gen/latchkey/v1/services.ts";
import { SeededRandom } from "../domain/seeded-random.ts";
import { compileGadgets } from "../support/gadgets.ts";
import { brokenCodecs } from "./broken-codecs.ts";
import { compareGoodRequests, compareRequests, compareResponses } from "./compare-codec.ts";

/*
 * Codecs beside the strict decoder and the reference encoder: those of all hot methods, and those of a proto file with
 * every kind of field that codecs can have. LATCHKEY_FUZZ_SEED replays a run.
 */

const seed = Number(process.env.LATCHKEY_FUZZ_SEED ?? Date.now() % 2 ** 32);
const requests = 4000;
const goodRequests = 200;
const responses = 1000;
const load = compileGadgets();
const { takeGadgets, countGadgets } = load();
const codecs = [...hotMethods, takeGadgets, countGadgets].map((codec) => [codec.path, codec] as const);
const forms = ["json", "wire"] as const;

describe.each(codecs)(`%s with seed ${seed}`, (_, codec) => {
  it.each(forms)("reads every good request in %s itself, as the decoder does", (form) => {
    expect(compareGoodRequests(codec, form, goodRequests, new SeededRandom(seed)).difference).toBeUndefined();
  });

  it.each(forms)("reads odd and damaged requests in %s as the decoder does, or leaves them to it", (form) => {
    const { difference, taken } = compareRequests(codec, form, requests, new SeededRandom(seed));
    expect(difference).toBeUndefined();
    expect(taken).toBeGreaterThan(requests / 20);
    expect(taken).toBeLessThan(requests * 0.9);
  });

  it("prints the same JSON and the same frames as the reference", () => {
    expect(compareResponses(codec, responses, new SeededRandom(seed))).toBeUndefined();
  });
});

describe(`the comparison with seed ${seed} notices`, () => {
  it.each(Object.entries(brokenCodecs))("%s", (_, breakage) => {
    const { takeGadgets: broken } = load(breakage);
    const random = new SeededRandom(seed);
    const compare = () => {
      // In small portions, because most are noticed soon.
      for (let n = 0; n < 500; n++) {
        const found = [
          compareResponses(broken, 5, random),
          ...forms.map((form) => compareRequests(broken, form, 20, random).difference),
        ].find((difference) => difference !== undefined);
        if (found !== undefined) throw new Error(found);
      }
    };
    expect(compare).toThrow();
  });
});
