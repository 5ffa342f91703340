import { describe, expect, it } from "vitest";
import {
  addressGroupOf,
  FailuresByAddress,
  failuresMax,
  failureWindowMs,
} from "../../src/domain/failures-by-address.ts";

describe("the addresses that count as one caller", () => {
  it.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:192.0.2.1", "192.0.2.1"],
    ["::ffff:c000:201", "192.0.2.1"],
    ["0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:DB8:1:2::1", "2001:db8:1:2::/64"],
    ["2001:0db8:1:2:ffff::", "2001:db8:1:2::/64"],
    ["2001:db8:1::1", "2001:db8:1:0::/64"],
    ["2001:db8::5:6:7:8", "2001:db8:0:0::/64"],
    ["2001:db8:1:2:ffff:ffff:192.0.2.1", "2001:db8:1:2::/64"],
    ["::1", "0:0:0:0::/64"],
    ["::", "0:0:0:0::/64"],
    ["::192.0.2.1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["fe80::2%eth1", "fe80:0:0:0::/64"],
    ["unknown", "unknown"],
    ["a:b", "a:b"],
  ])("%s belongs to %s", (address, group) => {
    expect(addressGroupOf(address)).toBe(group);
  });
});

describe("failures by address", () => {
  const many = (failures: FailuresByAddress, address: string, count: number, nowMs: number) =>
    Array.from({ length: count }, () => failures.count(address, nowMs));

  it("are too many after 20 in a minute, until the minute is over", () => {
    const failures = new FailuresByAddress();
    expect(failures.count("192.0.2.1", 1000)).toBe(0);
    expect(many(failures, "192.0.2.1", failuresMax - 1, 31_000)).toEqual(Array(failuresMax - 1).fill(0));
    expect(failures.count("192.0.2.1", 31_000)).toBe(30_000);
    // Rounded up: RPC protocols tell it as a whole number.
    expect(failures.count("192.0.2.1", 60_999.4)).toBe(1);
    // Failures above the limit do not make the window longer.
    expect(many(failures, "192.0.2.1", failuresMax, 61_000)).toEqual(Array(failuresMax).fill(0));
    expect(failures.count("192.0.2.1", 61_000)).toBe(failureWindowMs);
  });

  it("are counted for each address, and together for one network of IPv6", () => {
    const failures = new FailuresByAddress();
    many(failures, "192.0.2.1", failuresMax, 0);
    expect(failures.count("192.0.2.2", 0)).toBe(0);
    expect(failures.count("::ffff:192.0.2.1", 0)).toBe(failureWindowMs);
    for (let i = 0; i < failuresMax; i++) expect(failures.count(`2001:db8::${i}`, 0)).toBe(0);
    expect(failures.count("2001:db8::ffff", 0)).toBe(failureWindowMs);
    expect(failures.count("2001:db8:0:1::ffff", 0)).toBe(0);
  });

  it("take bounded memory: the window that began first is dropped", () => {
    const failures = new FailuresByAddress(100);
    many(failures, "a", failuresMax, 0);
    many(failures, "b", failuresMax, 0);
    // Begins a second window, so "b" has the oldest one.
    many(failures, "a", failuresMax, failureWindowMs);
    const atMs = failureWindowMs - 1;
    for (let i = 0; i < 99; i++) failures.count(`other ${i}`, atMs);
    expect(failures.size).toBe(100);
    expect(failures.count("a", failureWindowMs)).toBe(failureWindowMs);
    expect(failures.count("b", atMs)).toBe(0);
    for (let i = 0; i < 10_000; i++) failures.count(`more ${i}`, failureWindowMs);
    expect(failures.size).toBe(100);
  });
});
