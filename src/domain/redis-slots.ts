/** Slots of a Redis Cluster. Each key belongs to one slot; each master serves some of them. */
export const slotCount = 16_384;

/** CRC-16/XMODEM, as Redis Cluster uses it. */
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let value = byte << 8;
  for (let bit = 0; bit < 8; bit++) value = (value & 0x8000) === 0 ? value << 1 : (value << 1) ^ 0x1021;
  return value;
});

/** The slot of an ASCII key. If the key has braces, only the text inside the first pair counts. */
export function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (let i = 0; i < hashed.length; i++) {
    crc = ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ (hashed.charCodeAt(i) & 0xff)] as number);
  }
  return crc % slotCount;
}
