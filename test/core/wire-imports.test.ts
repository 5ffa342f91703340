import { describe, expect, it } from "vitest";
import { fromWireChange } from "../../src/core/wire-management.ts";
import { refillRule } from "../contract/sample-keys.ts";
import { realKey } from "./core-cases.ts";

const event = { id: "evt_1", atMs: 1, actor: "root" };

/** Reads an import of these keys, which are good but for what is given. */
function read(keys: readonly object[], given: object = {}) {
  const all = keys.map((own) => ({ ...realKey({ apiId: "api" }), start: "", eventId: "evt_2", ...own }));
  const commandJson = JSON.stringify({ kind: "importKeys", apiId: "api", keys: all, event, ...given });
  return fromWireChange({ commandJson, idempotencyJson: "" });
}

describe("an import that an edge sends", () => {
  it("is read with everything that it may have", () => {
    const full = {
      start: "sk_",
      remaining: 1,
      refill: refillRule(),
      rateLimit: { mode: "strict", limit: 1, durationMs: 1000 },
      rateLimits: [
        { name: "minute", rule: { mode: "strict", limit: 3, durationMs: 60_000 } },
        { name: "a.B-_9", rule: { mode: "local", limit: 5, durationMs: 1000 } },
      ],
      costMax: 7,
      permissions: ["docs.*"],
      ipAllow: ["::1"],
    };
    expect(read([{}, full]).command).toMatchObject({ kind: "importKeys", apiId: "api", keys: [{ start: "" }, full] });
    expect(read(Array.from({ length: 100 }, () => ({}))).command).toMatchObject({ kind: "importKeys" });
  });

  it.each<[string, readonly object[], object?]>([
    ["nothing", []],
    ["too many keys", Array.from({ length: 101 }, () => ({}))],
    ["what is no list", [], { keys: {} }],
    ["a key of another API", [{}, { apiId: "other" }]],
    ["a key of no API", [{}], { apiId: "" }],
    ["a key without an event", [{ eventId: "" }]],
    ["a key by no digest", [{ secretDigest: "short" }]],
    ["a refill without a counter", [{ refill: refillRule() }]],
    ["a start that is too long", [{ start: "s".repeat(256) }]],
    ["another field", [{ secret: "sk" }]],
  ])("is refused with %s", (_, keys, given) => {
    expect(() => read(keys, given)).toThrow("impossible");
  });
});
