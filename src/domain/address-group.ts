/**
 * The addresses that count as one caller: of IPv4 each one, of IPv6 a network of 64 bits, because that is what one customer
 * of a provider gets at least. An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) is that IPv4 address. `address`
 * is as a socket tells it; anything else stands for itself.
 */
export function addressGroupOf(address: string): string {
  if (!address.includes(":")) return address;
  const parts = partsOf(address);
  if (parts.length !== 8) return address;
  const isIPv4 = parts.slice(0, 5).every((part) => part === 0) && parts[5] === 0xffff;
  if (isIPv4) return [parts[6], parts[7]].flatMap((part = 0) => [part >> 8, part & 0xff]).join(".");
  const network = parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}

/** The eight parts of an IPv6 address. The zone of a link (`%eth0`) is not one of them. */
function partsOf(address: string): number[] {
  const [before = "", after] = (address.split("%")[0] ?? "").split("::");
  const first = numbersOf(before);
  if (after === undefined) return first;
  const last = numbersOf(after);
  return [...first, ...Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => 0), ...last];
}

function numbersOf(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((part) => {
    if (!part.includes(".")) return [Number.parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split(".").map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}
