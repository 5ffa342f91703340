// Messages per second that the generated codecs read and write: flat ones as a plain verification has them, and those with
// costs, named limits and an owner, which a proto file of the tests stands in for. `npm run bench:codec`; takes about a
// minute, prints a table.

import { create, fromJsonString, toBinary } from "@bufbuild/protobuf";
import { hotMethods } from "../gen/latchkey/v1/keys_hot.ts";
import type { HotMethod } from "../src/codec/codec-runtime.ts";
import { formatKey } from "../src/domain/key-format.ts";
import { decodeBinary } from "../src/rpc/decoding/decode-binary.ts";
import { decodeJson } from "../src/rpc/decoding/decode-json.ts";
import { validated } from "../src/rpc/validate.ts";
import { compileGadgets } from "../test/support/gadgets.ts";
import { type Measured, measureInTurns, row } from "./rounds.ts";

const turns = { rounds: 9, roundMs: 250 };
const burst = 200;
const verifyKey = hotMethods[0] as HotMethod;
const { takeGadgets, countGadgets } = compileGadgets()();

const { key } = formatKey("live", Buffer.alloc(16, 7));
const cost = { remaining: { cost: 10 }, permissions: "documents.read" };
const named = [{ name: "per-minute", cost: 10 }];
const flat = { key, apiId: "api_1" };
const requests: Record<string, { codec: HotMethod; message: Record<string, unknown> }> = {
  "a key": { codec: verifyKey, message: { key } },
  "a key and its API": { codec: verifyKey, message: flat },
  "the same in a message with more fields": { codec: takeGadgets, message: flat },
  "and a cost, a permission query": { codec: takeGadgets, message: { ...flat, ...cost } },
  "and a named limit": { codec: takeGadgets, message: { ...flat, ...cost, ratelimits: named } },
  "a free-standing limit": {
    codec: countGadgets,
    message: { namespace: "login", identifier: "203.0.113.7", limit: 100, duration: 60_000, cost: 1, async: true },
  },
};

const state = { limit: 100, remaining: 42, reset: 1_790_000_000_000 };
const plain = {
  keyId: "key_2AsTXY7ZPJon57xXlwg1iF",
  valid: true,
  code: "VALID",
  meta: {},
  requestId: "req_0123456789",
};
const states = [{ name: "per-minute", state }];
const responses: Record<string, { codec: HotMethod; message: Record<string, unknown> }> = {
  "a plain response": { codec: verifyKey, message: plain },
  "with a limit": { codec: verifyKey, message: { ...plain, ratelimit: state } },
  "the same in a message with more fields": { codec: takeGadgets, message: { ...plain, state } },
  "and a named limit": { codec: takeGadgets, message: { ...plain, state, ratelimits: states } },
  "and an owner": {
    codec: takeGadgets,
    message: { ...plain, state, ratelimits: states, owner: { remaining: 5, ratelimits: states } },
  },
};

/** So that nothing is left out as unused. */
export let kept: unknown;

type Run = (ms: number) => Promise<number>;

await print("read from JSON", requests, ({ codec, message }) => {
  const body = Buffer.from(JSON.stringify(message));
  return () => taken(codec.decodeJson(body, 0, body.length));
});
await print("read from the wire", requests, ({ codec, message }) => {
  const { input } = codec.method;
  const body = Buffer.from(toBinary(input, fromJsonString(input, JSON.stringify(message))));
  return () => taken(codec.decodeBinary(body, 0));
});
await print("printed as JSON", responses, ({ codec, message }) => {
  return () => codec.encodeJson(message);
});
await print("written as a frame", responses, ({ codec, message }) => {
  return () => codec.encodeFrame(message);
});

const strictly = requests["and a named limit"] as { codec: HotMethod; message: Record<string, unknown> };
const { input } = strictly.codec.method;
const json = Buffer.from(JSON.stringify(strictly.message));
const wire = toBinary(input, create(input, strictly.message));
await print("and a named limit, by the strict decoder", { JSON: decodeJson, wire: decodeBinary }, (decode) => {
  const body = decode === decodeJson ? json : wire;
  return () => validated(input, decode(input, body));
});

async function print<T>(title: string, cases: Readonly<Record<string, T>>, prepare: (each: T) => () => unknown) {
  const contestants = Object.fromEntries(Object.entries(cases).map(([name, each]) => [name, rateOf(prepare(each))]));
  const measured = await measureInTurns(contestants, turns);
  const [first] = Object.values(measured) as [Measured];
  console.log(`\n| ${title}, per second | median | spread | ratio |\n|---|---|---|---|`);
  for (const [name, each] of Object.entries(measured)) console.log(row(name, each, first, 2));
}

function taken(message: unknown): unknown {
  if (message === undefined) throw new Error("the codec does not read this request");
  return message;
}

function rateOf(work: () => unknown): Run {
  return async (ms) => {
    const startedMs = performance.now();
    let done = 0;
    for (; performance.now() - startedMs < ms; done += burst) for (let i = 0; i < burst; i++) kept = work();
    return (done * 1000) / (performance.now() - startedMs);
  };
}
