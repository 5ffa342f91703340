import { describe, expect, it } from "vitest";
import { covers } from "../../src/domain/permissions.ts";

describe("a list of permissions", () => {
  it.each<[granted: string[], wanted: string, isCovered: boolean]>([
    [[], "keys.read", false],
    [["keys.read"], "keys.read", true],
    [["keys.read"], "keys.create", false],
    [["keys.read"], "keys.reading", false],
    [["keys.reading"], "keys.read", false],
    [["keys.read"], "apis.read", false],
    [["apis.read", "keys.read"], "keys.read", true],
    [["keys.*"], "keys.read", true],
    [["keys.*"], "keys.verify", true],
    [["keys.*"], "keysets.read", false],
    [["keys.*"], "rootKeys.read", false],
    [["keys.*"], "keys", false],
    [["*"], "keys.read", true],
    [["*"], "rootKeys.update", true],
    [["keys*"], "keys.read", false],
    [["keys.a.*"], "keys.a.b.c", true],
    [["keys.a.*"], "keys.ab", false],
    // What a root key may grant to another: patterns.
    [["*"], "*", true],
    [["*"], "keys.*", true],
    [["keys.*"], "keys.*", true],
    [["keys.*"], "*", false],
    [["keys.*", "apis.*", "rootKeys.*", "audit.*"], "*", false],
    [["keys.read", "keys.create", "keys.update", "keys.delete", "keys.verify"], "keys.*", false],
    [["apis.*"], "keys.*", false],
  ])("%j covers %s: %s", (granted, wanted, isCovered) => {
    expect(covers(granted, wanted)).toBe(isCovered);
  });
});
