import { type Latchkey, rootKey, startLatchkey, vastLimit } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";

type Figures = "priced" | "strict" | "free" | "unrecorded" | "owned";

/** Few microseconds are told apart here: many rounds side by side, each in one state of the machine. */
const manyShort = { rounds: 11, roundMs: 500 };

export const decisions: Section<Figures> = {
  title: "Decisions with more to decide",
  how: "One cached key of each kind over JSON, embedded store, 32 connections, limits that are never reached.",
  goals: {
    priced: {
      what: "with a cost, a permission query and a named local limit, beside a plain one",
      unit: "×",
      atLeast: 0.8,
    },
    strict: { what: "a hot key with two strict limits, beside one with one", unit: "×", atLeast: 0.85 },
    free: { what: "`ratelimits.limit`, local, beside a verification with a local limit", unit: "×", atLeast: 0.85 },
    unrecorded: { what: "a key whose owner has no record, beside a plain one", unit: "×", atLeast: 0.95 },
    owned: { what: "a key whose owner has a local limit, beside one with a local limit of its own", unit: "×" },
  },
  async measure(bench) {
    const latchkey = await startLatchkey(bench);
    const contestants = await contestantsOf(bench, latchkey);
    const { table, cpuRatio } = await compare(this.title, contestants, { ...bench.turns, ...manyShort });
    return {
      text: [table],
      figures: {
        priced: cpuRatio("priced"),
        strict: cpuRatio("twoStrict", "oneStrict"),
        free: cpuRatio("free", "local"),
        unrecorded: cpuRatio("unrecorded"),
        owned: cpuRatio("owned", "local"),
      },
    };
  },
};

async function contestantsOf(bench: Bench, latchkey: Latchkey) {
  await latchkey.manage("owners.createOwner", { ownerId: "acme", ratelimits: [{ name: "day", ...vastLimit }] });
  const contestant = async (title: string, properties: object, request: object = {}) => {
    const key = await latchkey.createKey(properties);
    const call = { method: "keys.verifyKey", body: { key, ...request } };
    return { title, server: latchkey, load: bench.loads.call(latchkey.port, call) };
  };
  const named = { ratelimits: [{ name: "day", ...vastLimit }] };
  const strict = { ...vastLimit, async: false };
  const limit = { namespace: "login", identifier: "192.0.2.1", ...vastLimit };
  return {
    plain: await contestant("a plain verification", {}),
    priced: await contestant(
      "with a cost, a permission query and a named local limit",
      { permissions: ["docs.*"], ...named },
      { permissions: "docs.read AND (docs.write OR admin)", ratelimits: [{ name: "day", cost: 2 }] },
    ),
    local: await contestant("a local limit", { ratelimit: vastLimit }),
    free: {
      title: "`ratelimits.limit`, local",
      server: latchkey,
      load: bench.loads.call(latchkey.port, { method: "ratelimits.limit", body: limit, rootKey }),
    },
    oneStrict: await contestant("one strict limit", { ratelimit: strict }),
    twoStrict: await contestant("two strict limits", { ratelimit: strict, ratelimits: [{ name: "day", ...strict }] }),
    unrecorded: await contestant("an owner without a record", { ownerId: "nobody" }),
    owned: await contestant("an owner with a local limit", { ownerId: "acme" }),
  };
}
