import { BlockList, isIP } from "node:net";
import { describe, expect, it } from "vitest";
import { includesAddress, parseIpAddress, toIpRanges } from "../../src/domain/ip-allow.ts";
import { isIpRange } from "./is-ip-range.ts";
import { SeededRandom } from "./seeded-random.ts";

describe("an address", () => {
  it.each([
    ["1.2.3.4", [0, 0, 0xffff, 0x01020304]],
    ["255.255.255.255", [0, 0, 0xffff, -1]],
    ["::ffff:1.2.3.4", [0, 0, 0xffff, 0x01020304]],
    ["::FFFF:102:304", [0, 0, 0xffff, 0x01020304]],
    ["0:0:0:0:0:ffff:1.2.3.4", [0, 0, 0xffff, 0x01020304]],
    ["::", [0, 0, 0, 0]],
    ["::1", [0, 0, 0, 1]],
    ["1::", [0x10000, 0, 0, 0]],
    ["1:2:3:4:5:6:7:8", [0x10002, 0x30004, 0x50006, 0x70008]],
    ["1:2:3:4:5:6:7::", [0x10002, 0x30004, 0x50006, 0x70000]],
    ["::2:3:4:5:6:7:8", [0x2, 0x30004, 0x50006, 0x70008]],
    ["2001:db8::a:b", [0x20010db8, 0, 0, 0xa000b]],
    ["fe80::1%eth0", [0xfe80_0000 | 0, 0, 0, 1]],
    ["1:2:3:4:5:6:1.2.3.4", [0x10002, 0x30004, 0x50006, 0x01020304]],
  ])("%s is read", (text, numbers) => {
    expect(parseIpAddress(text)).toEqual(numbers);
  });

  const bad = [
    "",
    "1.2.3",
    "1.2.3.4.5",
    "01.2.3.4",
    "1.2.3.04",
    "256.1.1.1",
    "1.2.3.-4",
    "1.2.3.4 ",
    " 1.2.3.4",
    "1..3.4",
  ];
  bad.push("1.2.3.4:80", "[::1]", ":", ":::", "1:", ":1", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::");
  bad.push(
    "g::",
    "::1.2.3",
    "::1.2.3.4:5",
    "1.2.3.4::",
    "1:2:3:4:5:6:7:1.2.3.4",
    "1:2:3:4:5:6:7::8",
    "::1%",
    "1.2.3.4%a",
  );
  bad.push(
    "localhost",
    "::1/128",
    "1.2.3.4/32",
    "１.2.3.4",
    "1.2.3.4\0",
    "0x1.2.3.4",
    "1.2.3.",
    ".1.2.3",
    "::ffff:1.2.3.256",
  );
  it.each(bad)("%j is none", (text) => {
    expect(parseIpAddress(text)).toBeUndefined();
  });

  it("is read exactly where Node reads one: 20000 random texts", () => {
    const random = new SeededRandom(4);
    const pieces = ["0", "1", "ff", "abcd", ":", ":", "::", ".", "1.2.3.4", "255", "00", "10000", "ffff"];
    for (let run = 0; run < 20_000; run++) {
      const text = Array.from({ length: random.integer(1, 15) }, () => random.pick(pieces)).join("");
      expect(parseIpAddress(text) !== undefined, text).toBe(isIP(text) !== 0);
    }
  });
});

describe("what a key may be used from", () => {
  it.each(["1.2.3.4", "10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "::1", "::/0", "2001:db8::/32", "::ffff:1.2.3.0/120"])(
    "%s is a range",
    (text) => {
      expect(isIpRange(text)).toBe(true);
    },
  );

  const bad = ["", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "10/8"];
  // With bits after the prefix: perhaps one address was meant, perhaps a range.
  bad.push(
    "10.0.0.1/8",
    "1.2.3.4/31.0",
    "2001:db8::1/32",
    "::ffff:1.2.3.4/120",
    "1.2.3.4/0",
    "fe80::1%eth0",
    "*",
    "10.0.0.*",
  );
  it.each(bad)("%j is none", (text) => {
    expect(isIpRange(text)).toBe(false);
    expect(() => toIpRanges([text])).toThrow(RangeError);
  });

  it.each<[ranges: string[], address: string, isInside: boolean]>([
    [["1.2.3.4"], "1.2.3.4", true],
    [["1.2.3.4"], "1.2.3.5", false],
    [["1.2.3.4"], "::ffff:1.2.3.4", true],
    [["::ffff:1.2.3.4"], "1.2.3.4", true],
    [["::ffff:1.2.3.0/120"], "1.2.3.99", true],
    [["10.0.0.0/8", "192.168.0.0/16"], "192.168.255.255", true],
    [["10.0.0.0/8", "192.168.0.0/16"], "192.169.0.0", false],
    [["128.0.0.0/1"], "200.1.1.1", true],
    [["128.0.0.0/1"], "127.1.1.1", false],
    [["0.0.0.0/0"], "200.1.1.1", true],
    [["0.0.0.0/0"], "::1", false],
    [["::/0"], "2001:db8::1", true],
    [["::/0"], "1.2.3.4", false],
    [["::/0"], "::ffff:1.2.3.4", false],
    [["::/64"], "1.2.3.4", false],
    [["::ffff:0:0/96"], "1.2.3.4", true],
    [["2001:db8::/33"], "2001:db8:7fff::", true],
    [["2001:db8::/33"], "2001:db8:8000::", false],
    [["2001:db8::/127"], "2001:db8::1", true],
    [["2001:db8::/127"], "2001:db8::2", false],
    [["fe80::/10"], "fe80::1%eth0", true],
  ])("%j includes %s: %s", (texts, text, isInside) => {
    expect(includesAddress(toIpRanges(texts), addressOf(text))).toBe(isInside);
  });

  it("is what Node's BlockList says: 20000 random addresses in random lists", () => {
    const random = new SeededRandom(11);
    for (let run = 0; run < 500; run++) {
      // One for each family: a list of both takes `::/0` for all of IPv4, too.
      const [list4, list6] = [new BlockList(), new BlockList()];
      const texts = Array.from({ length: random.integer(1, 8) }, () => {
        const isIPv4 = random.chance(0.5);
        const bits = random.integer(0, isIPv4 ? 32 : 128);
        const first = isIPv4 ? printIPv4(randomBits(random, 32, bits)) : printIPv6(randomBits(random, 128, bits));
        if (isIPv4) list4.addSubnet(first, bits, "ipv4");
        else list6.addSubnet(first, bits, "ipv6");
        return `${first}/${bits}`;
      });
      const ranges = toIpRanges(texts);
      for (let i = 0; i < 40; i++) {
        const isIPv4 = random.chance(0.5);
        const address = isIPv4 ? printIPv4(randomBits(random, 32, 32)) : printIPv6(randomBits(random, 128, 128));
        const isInside = isIPv4 ? list4.check(address, "ipv4") : list6.check(address, "ipv6");
        expect(includesAddress(ranges, addressOf(address)), `${address} in ${texts}`).toBe(isInside);
        if (isIPv4) expect(includesAddress(ranges, addressOf(`::ffff:${address}`))).toBe(isInside);
      }
    }
  });
});

function addressOf(text: string) {
  const address = parseIpAddress(text);
  if (address === undefined) throw new Error(`not an address: ${text}`);
  return address;
}

/** Bits, of which only the first are set. Few of them vary, so that addresses and ranges meet. */
function randomBits(random: SeededRandom, length: number, setMax: number): number[] {
  return Array.from({ length }, (_, at) => (at < setMax && (at < 3 || at > length - 3) && random.chance(0.5) ? 1 : 0));
}

function numbersOf(bits: readonly number[], size: number): number[] {
  return Array.from({ length: bits.length / size }, (_, at) =>
    Number.parseInt(bits.slice(at * size, (at + 1) * size).join(""), 2),
  );
}

const printIPv4 = (bits: readonly number[]) => numbersOf(bits, 8).join(".");
const printIPv6 = (bits: readonly number[]) =>
  numbersOf(bits, 16)
    .map((group) => group.toString(16))
    .join(":");
