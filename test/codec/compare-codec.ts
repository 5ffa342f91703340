import { isDeepStrictEqual } from "node:util";
import { create, type DescMessage, type MessageShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import type { HotMethod } from "../../src/codec/codec-runtime.ts";
import { decodeBinary } from "../../src/rpc/decoding/decode-binary.ts";
import { decodeJson } from "../../src/rpc/decoding/decode-json.ts";
import { InvalidRequest } from "../../src/rpc/invalid-request.ts";
import { validated } from "../../src/rpc/validate.ts";
import type { SeededRandom } from "../domain/seeded-random.ts";
import { outcomeOf } from "../rpc/decoding/refusal.ts";
import { type IsOdd, randomJson } from "./random-json.ts";
import { randomResponse } from "./random-response.ts";
import { randomWire } from "./random-wire.ts";

/* Each of these runs a codec beside the strict decoder, or the reference encoder, and tells the first difference. */

export interface Comparison {
  readonly difference: string | undefined;
  /** How many of the requests the codec read itself. */
  readonly taken: number;
}

type Form = "json" | "wire";

/** Requests with one odd part, and good ones whose bytes are changed. What the codec leaves to the decoder cannot differ. */
export function compareRequests(codec: HotMethod, form: Form, count: number, random: SeededRandom): Comparison {
  let taken = 0;
  for (let n = 0; n < count; n++) {
    const bytes = n % 3 === 0 ? mutated(goodBody(codec, form, random), random) : oddBody(codec, form, random);
    const read = decodeByCodec(codec, form, bytes);
    if (read === undefined) continue;
    taken++;
    const difference = differenceFromDecoder(codec, form, bytes, read);
    if (difference !== undefined) return { difference, taken };
  }
  return { difference: undefined, taken };
}

/** Good requests, as most clients write them: the codec must read them all. */
export function compareGoodRequests(codec: HotMethod, form: Form, count: number, random: SeededRandom): Comparison {
  for (let taken = 0; taken < count; taken++) {
    const bytes = goodBody(codec, form, random);
    const read = decodeByCodec(codec, form, bytes);
    const difference =
      read === undefined ? `not taken: ${print(bytes)}` : differenceFromDecoder(codec, form, bytes, read);
    if (difference !== undefined) return { difference, taken };
  }
  return { difference: undefined, taken: count };
}

/** Undefined if all responses are the same bytes as the reference's. */
export function compareResponses(codec: HotMethod, count: number, random: SeededRandom): string | undefined {
  const { output } = codec.method;
  for (let n = 0; n < count; n++) {
    const response = randomResponse(output, random);
    const message = create(output, response);
    const json = codec.encodeJson(response);
    const expectedJson = toJsonString(output, message, { alwaysEmitImplicit: true });
    if (json !== expectedJson) return `printed ${json} instead of ${expectedJson}`;
    const frame = codec.encodeFrame(response);
    const expected = toBinary(output, message);
    const isFramed = frame[0] === 0 && frame.readUInt32BE(1) === expected.length;
    if (!isFramed || !frame.subarray(5).equals(expected)) return `wrote ${print(frame)} instead of ${print(expected)}`;
  }
  return undefined;
}

function differenceFromDecoder(codec: HotMethod, form: Form, bytes: Buffer, read: unknown): string | undefined {
  const { input } = codec.method;
  const decode = form === "json" ? decodeJson : decodeBinary;
  const expected = outcomeOf<MessageShape<DescMessage>>(() => validated(input, decode(input, bytes)));
  if (expected instanceof InvalidRequest) return `read what the decoder refuses (${expected.message}): ${print(bytes)}`;
  if (isDeepStrictEqual(withoutAbsent(read), withoutAbsent(expected))) return undefined;
  return `read ${JSON.stringify(read)} instead of ${JSON.stringify(expected)}: ${print(bytes)}`;
}

/** The codec reads from the middle of a buffer, as it does from a connection. */
function decodeByCodec(codec: HotMethod, form: Form, bytes: Buffer): unknown {
  if (form === "wire") return codec.decodeBinary(Buffer.concat([Buffer.of(0x0a, 1, 0x61), bytes]), 3);
  return codec.decodeJson(Buffer.concat([Buffer.from('{"'), bytes, Buffer.from("} ")]), 2, 2 + bytes.length);
}

function goodBody(codec: HotMethod, form: Form, random: SeededRandom): Buffer {
  return randomBody(codec, form, random, () => false);
}

/** Odd in one place, or in none where the body has fewer places. */
function oddBody(codec: HotMethod, form: Form, random: SeededRandom): Buffer {
  let places = 0;
  randomBody(codec, form, random, () => {
    places++;
    return false;
  });
  let left = random.integer(0, places - 1);
  return randomBody(codec, form, random, () => left-- === 0);
}

function randomBody({ method }: HotMethod, form: Form, random: SeededRandom, isOdd: IsOdd): Buffer {
  return Buffer.from((form === "json" ? randomJson : randomWire)(method.input, random, isOdd));
}

/** Some bytes are changed, left out, repeated or moved. */
function mutated(bytes: Buffer, random: SeededRandom): Buffer {
  let body = bytes;
  for (let changes = random.integer(1, 2); changes > 0; changes--) {
    const at = random.integer(0, body.length);
    const until = at + random.integer(0, 8);
    const change = random.pick([
      () => [body.subarray(0, at), Buffer.of(random.integer(0, 255)), body.subarray(at + 1)],
      () => [body.subarray(0, at), Buffer.of((body[at] ?? 0) ^ (1 << random.integer(0, 7))), body.subarray(at + 1)],
      () => [body.subarray(0, at), Buffer.of((body[at] ?? 0) + random.pick([-1, 1])), body.subarray(at + 1)],
      () => [body.subarray(0, at), body.subarray(until)],
      () => [body.subarray(0, until), body.subarray(at)],
      () => [body.subarray(0, at), Buffer.from(random.pick(tokens)), body.subarray(at)],
      () => [body.subarray(0, at)],
    ]);
    body = Buffer.concat(change());
  }
  return body;
}

const tokens = ['"', "\\", "{", "}", "[", "]", ":", ",", "0", "1", ".", "e1", "-", "null", "true", "é", " ", "\0"];

/** A field that is absent and one that is undefined are the same to a handler. */
function withoutAbsent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutAbsent);
  if (typeof value !== "object" || value === null) return value;
  const present = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(present.map(([name, member]) => [name, withoutAbsent(member)]));
}

function print(bytes: Uint8Array): string {
  return JSON.stringify(Buffer.from(bytes).toString("latin1").slice(0, 2000));
}
