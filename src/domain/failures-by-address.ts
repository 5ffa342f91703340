import { parseIpAddress } from "./ip-allow.ts";

/** So many failures of an address in a minute stay without consequence. */
export const failuresMax = 20;
export const failureWindowMs = 60_000;

/**
 * Counts failures by address, each in windows of a minute. An address's window begins with its first failure. Memory is
 * bounded: above `addressesMax` the window that began first is dropped, so that address begins again at 0.
 */
export class FailuresByAddress {
  readonly #addressesMax: number;
  /** The window that began first comes first. */
  readonly #windows = new Map<string, { readonly endsAtMs: number; failures: number }>();

  constructor(addressesMax = 10_000) {
    this.#addressesMax = addressesMax;
  }

  /** Addresses with a window, also one that is over. */
  get size(): number {
    return this.#windows.size;
  }

  /** Counts one failure. Returns 0, or for one failure too many the time until the window's end, in whole ms. */
  count(address: string, nowMs: number): number {
    const group = addressGroupOf(address);
    const window = this.#windows.get(group);
    if (window === undefined || window.endsAtMs <= nowMs) {
      this.#begin(group, nowMs);
      return 0;
    }
    window.failures++;
    return window.failures > failuresMax ? Math.ceil(window.endsAtMs - nowMs) : 0;
  }

  #begin(group: string, nowMs: number): void {
    // Deleted first: a map keeps the place of an entry that is only replaced.
    this.#windows.delete(group);
    const [first] = this.#windows.keys();
    if (first !== undefined && this.#windows.size >= this.#addressesMax) this.#windows.delete(first);
    this.#windows.set(group, { endsAtMs: nowMs + failureWindowMs, failures: 1 });
  }
}

/**
 * The addresses that count as one caller: of IPv4 each one, of IPv6 a network of 64 bits, because that is what one customer
 * of a provider gets at least. An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) is that IPv4 address. `address`
 * is as a socket reports it; anything else stands for itself.
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
