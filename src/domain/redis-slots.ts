/** Slots of a Redis Cluster. Each key belongs to one slot; each master serves some of them. */
export const slotCount = 16_384;

/** CRC-16/XMODEM, as Redis Cluster uses it. */
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let value = byte << 8;
  for (let bit = 0; bit < 8; bit++) value = (value & 0x8000) === 0 ? value << 1 : (value << 1) ^ 0x1021;
  return value;
});

/** The slot of a key. If the key has braces, only the text inside the first pair counts. */
export function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of utf8Of(hashed)) crc = ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ byte] as number);
  return crc % slotCount;
}

/** Marks of the first byte of a character, by the number of bytes that follow. */
const firstByte = [0, 0xc0, 0xe0, 0xf0];

/** The bytes that Redis gets and hashes. Names beyond ASCII would have another slot by their UTF-16 units. */
function* utf8Of(text: string): Generator<number> {
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    if (code < 0x80) {
      yield code;
      continue;
    }
    const following = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    yield (firstByte[following] as number) | (code >> (6 * following));
    for (let i = following - 1; i >= 0; i--) yield 0x80 | ((code >> (6 * i)) & 0x3f);
  }
}
