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
  const bytes = utf8Of(hashed);
  for (let at = 0; at < bytes.length; at++)
    crc = ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ bytes.charCodeAt(at)] as number);
  return crc % slotCount;
}

/** The bytes that Redis gets and hashes, a character for each. Names beyond ASCII would have another slot by their UTF-16 units. */
function utf8Of(text: string): string {
  const escaped = encodeURIComponent(text.toWellFormed());
  return escaped.replaceAll(/%(..)/g, (_, byte: string) => String.fromCharCode(Number.parseInt(byte, 16)));
}
