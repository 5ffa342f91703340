/**
 * An address as four numbers of 32 bits, as IPv6 has them. An IPv4 address is the one that IPv6 maps it to, so that
 * `1.2.3.4` and `::ffff:1.2.3.4` are the same.
 */
export type IpAddress = readonly [number, number, number, number];

/**
 * Ranges of addresses, five numbers for each: its first address and the length of its prefix. Plain numbers, because cached
 * keys have them, and they are sent to workers and to edges.
 */
export type IpRanges = readonly number[];

/** The longest text of a range: a mapped address with all digits, and its prefix. */
export const ipRangeLengthMax = 49;

const colon = 0x3a;
const dot = 0x2e;
const mappedPrefix = 0xffff;
const mappedBits = 96;
const numbersOfRange = 5;

/** The address, in one of the usual ways to write one. The zone of a link (`%eth0`) is left out. */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (!text.includes(":")) return parseMapped(text);
  const zoneAt = text.indexOf("%");
  if (zoneAt === text.length - 1) return undefined;
  return parseIPv6(zoneAt < 0 ? text : text.slice(0, zoneAt));
}

/**
 * Throws a `RangeError` for a text that is neither an address nor a range such as `10.0.0.0/8`. An address with bits after the
 * prefix is neither.
 */
export function toIpRanges(texts: readonly string[]): IpRanges {
  return texts.flatMap((text) => {
    const range = parseIpRange(text);
    if (range === undefined) throw new RangeError("not an address or a range of addresses");
    return range;
  });
}

/**
 * Whether the address is in one of the ranges. A range that is wider than all of IPv4 is one of IPv6 addresses alone: `::/0`
 * allows no IPv4 address.
 *
 * Faster than node:net's `BlockList` for lists as people have them, which it would also allow IPv4 addresses for by `::/0`
 * (figures in adr 31).
 */
export function includesAddress(ranges: IpRanges, address: IpAddress): boolean {
  const [first, second, third, fourth] = address;
  const isIPv4 = first === 0 && second === 0 && third === mappedPrefix;
  for (let at = 0; at < ranges.length; at += numbersOfRange) {
    const bits = ranges[at + 4] as number;
    // The last number first: most IPv4 addresses differ there.
    if (
      isAlike(fourth, ranges[at + 3] as number, bits - 96) &&
      isAlike(third, ranges[at + 2] as number, bits - 64) &&
      isAlike(second, ranges[at + 1] as number, bits - 32) &&
      isAlike(first, ranges[at] as number, bits) &&
      !(isIPv4 && bits < mappedBits)
    )
      return true;
  }
  return false;
}

/** Whether two numbers have the same first bits. */
function isAlike(one: number, other: number, bits: number): boolean {
  if (bits <= 0) return true;
  return bits >= 32 ? one === other : (one ^ other) >>> (32 - bits) === 0;
}

/** The five numbers of a range. */
function parseIpRange(text: string): readonly number[] | undefined {
  if (text.length > ipRangeLengthMax || text.includes("%")) return undefined;
  const slashAt = text.indexOf("/");
  const address = parseIpAddress(slashAt < 0 ? text : text.slice(0, slashAt));
  if (address === undefined) return undefined;
  if (slashAt < 0) return [...address, 128];
  const offset = text.includes(":") ? 0 : mappedBits;
  const length = parseNumber(text, slashAt + 1, text.length, 128 - offset);
  if (length < 0) return undefined;
  const bits = length + offset;
  return isFirstOf(address, bits) ? [...address, bits] : undefined;
}

/** Whether no bit is set after these. */
function isFirstOf(address: IpAddress, bits: number): boolean {
  return address.every((number, index) => {
    const kept = bits - 32 * index;
    return kept >= 32 || (kept <= 0 ? number === 0 : number << kept === 0);
  });
}

function parseMapped(text: string): IpAddress | undefined {
  const number = parseIPv4(text, 0);
  return number === undefined ? undefined : [0, 0, mappedPrefix, number];
}

/** From there to the end of the text: four numbers without leading zeros. */
function parseIPv4(text: string, start: number): number | undefined {
  let address = 0;
  let from = start;
  for (let index = 0; index < 4; index++) {
    const to = index === 3 ? text.length : text.indexOf(".", from);
    const number = parseNumber(text, from, to, 255);
    if (number < 0) return undefined;
    address = (address << 8) | number;
    from = to + 1;
  }
  return address;
}

/** A number of one to three digits, without leading zeros. -1 for anything else. */
function parseNumber(text: string, from: number, to: number, max: number): number {
  const digits = to - from;
  if (digits < 1 || digits > 3 || (digits > 1 && text.charCodeAt(from) === 0x30)) return -1;
  let number = 0;
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number <= max ? number : -1;
}

function parseIPv6(text: string): IpAddress | undefined {
  const groups = [0, 0, 0, 0, 0, 0, 0, 0];
  let count = 0;
  /** How many groups come before `::`. */
  let gapAt = -1;
  let at = 0;
  if (text.startsWith("::")) {
    gapAt = 0;
    at = 2;
  }
  while (at < text.length) {
    if (count === 8) return undefined;
    const start = at;
    let group = 0;
    for (; at < text.length && at < start + 4; at++) {
      const digit = hexDigit(text.charCodeAt(at));
      if (digit < 0) break;
      group = (group << 4) | digit;
    }
    const next = text.charCodeAt(at);
    if (next === dot) {
      const last = count <= 6 ? parseIPv4(text, start) : undefined;
      if (last === undefined) return undefined;
      groups[count++] = last >>> 16;
      groups[count++] = last & 0xffff;
      break;
    }
    if (at === start) return undefined;
    groups[count++] = group;
    if (at === text.length) break;
    if (next !== colon || ++at === text.length) return undefined;
    if (text.charCodeAt(at) !== colon) continue;
    if (gapAt >= 0) return undefined;
    gapAt = count;
    at++;
  }
  // `::` stands for one group at least.
  if (gapAt < 0 ? count !== 8 : count === 8) return undefined;
  for (let from = count - 1, to = 7; gapAt >= 0 && from >= gapAt && from !== to; from--, to--) {
    groups[to] = groups[from] as number;
    groups[from] = 0;
  }
  return [numberAt(groups, 0), numberAt(groups, 2), numberAt(groups, 4), numberAt(groups, 6)];
}

function numberAt(groups: readonly number[], at: number): number {
  return ((groups[at] as number) << 16) | (groups[at + 1] as number);
}

/** -1 for any other character. */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
