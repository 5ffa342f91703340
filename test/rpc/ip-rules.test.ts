import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CreateKeyRequestSchema } from "../../gen/latchkey/v1/keys_pb.js";
import { permissionLengthMax } from "../../src/domain/permissions.ts";
import { validated } from "../../src/rpc/validate.ts";
import { isIpRange } from "../domain/is-ip-range.ts";
import { SeededRandom } from "../domain/seeded-random.ts";

/* What the contract lets in is what the service can read back: a key with a list that it cannot read would be an outage. */

const random = new SeededRandom(31);
const made = (pieces: readonly string[], lengthMax: number) =>
  Array.from({ length: random.integer(1, lengthMax) }, () => random.pick(pieces)).join("");

function isAccepted(lists: { ipAllow: string[] } | { permissions: string[] }): boolean {
  try {
    validated(CreateKeyRequestSchema, create(CreateKeyRequestSchema, { apiId: "api", ...lists }));
    return true;
  } catch {
    return false;
  }
}

/** What a key can have: one permission, all below one (`docs.*`), or all. */
function isKeyPermission(text: string): boolean {
  return text.length <= permissionLengthMax && /^(?:[A-Za-z0-9_.:-]+|(?:[A-Za-z0-9_.:-]+\.)?\*)$/.test(text);
}

describe("the rules of the contract", () => {
  it("take the same texts for addresses and ranges as the service", () => {
    const known = ["10.0.0.0/8", "10.0.0.1/8", "::/0", "::ffff:1.2.3.0/120", "::ffff:1.2.3.4/120", "1::1/64", "1::/64"];
    known.push("fe80::1%eth0", "fe80::%e/10", "01.2.3.4", "1.2.3.4/08", "::1/+1", "1.2.3.4/", "/8", "::1/0128", "::1 ");
    known.push(
      `0000:0000:0000:0000:0000:ffff:255.255.255.255/128`,
      "::ffff:0:0/96",
      "1:2:3:4:5:6:7::",
      "::1.2.3.4/128",
    );
    const pieces = [
      "0",
      "1",
      "ff",
      "::",
      ":",
      ":",
      ".",
      "1.2.3.4",
      "10.0.0.0",
      "/8",
      "/24",
      "/",
      "96",
      "128",
      "32",
      "00",
      "%a",
    ];
    const texts = [...known, ...Array.from({ length: 3000 }, () => made(pieces, 8))];
    const differ = texts.filter((text) => isAccepted({ ipAllow: [text] }) !== isIpRange(text));
    expect(differ).toEqual([]);
    expect(texts.filter(isIpRange).length).toBeGreaterThan(50);
  });

  it("take the same texts for permissions as the service", () => {
    const pieces = ["a", "Z9", ".", "*", ".*", ":", "-", "_", " ", "é", "\n", "x".repeat(60)];
    const texts = ["*", "", "a.*", ".*", "*.*", ...Array.from({ length: 3000 }, () => made(pieces, 5))];
    const differ = texts.filter((text) => isAccepted({ permissions: [text] }) !== isKeyPermission(text));
    expect(differ).toEqual([]);
  });
});
