import { parseIpAddress } from "./ip-allow.ts";

/**
 * The addresses that count as one caller: of IPv4 each one, of IPv6 a network of 64 bits, because that is what one customer
 * of a provider gets at least. An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) is that IPv4 address. `address`
 * is as a socket tells it; anything else stands for itself.
 */
export function addressGroupOf(address: string): string {
  if (!address.includes(":")) return address;
  const parsed = parseIpAddress(address);
  if (parsed === undefined) return address;
  const [first, second, third, fourth] = parsed;
  const isIPv4 = first === 0 && second === 0 && third === 0xffff;
  if (isIPv4) return [24, 16, 8, 0].map((shift) => (fourth >>> shift) & 0xff).join(".");
  const network = [first, second].flatMap((number) => [number >>> 16, number & 0xffff]);
  return `${network.map((part) => part.toString(16)).join(":")}::/64`;
}
