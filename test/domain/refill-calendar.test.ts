import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { boundariesPassed, boundaryIndex, boundaryMs, latestBoundaryMs } from "../../src/domain/refill-calendar.ts";

const anyInterval = fc.constantFrom("daily" as const, "monthly" as const);
const anyMoment = fc.integer({ min: Date.parse("1900-01-01T00:00:00Z"), max: Date.parse("2500-01-01T00:00:00Z") });

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("the latest boundary", () => {
  it.each([
    ["daily", "2026-01-15T12:00:00.000Z", "2026-01-15"],
    ["daily", "2026-01-15T00:00:00.000Z", "2026-01-15"],
    ["daily", "2026-01-14T23:59:59.999Z", "2026-01-14"],
    ["daily", "2024-02-29T23:59:59.999Z", "2024-02-29"],
    ["daily", "2024-03-01T00:00:00.000Z", "2024-03-01"],
    ["daily", "1970-01-01T00:00:00.000Z", "1970-01-01"],
    ["daily", "1969-12-31T23:59:59.999Z", "1969-12-31"],
    ["monthly", "2026-01-31T23:59:59.999Z", "2026-01-01"],
    ["monthly", "2026-02-01T00:00:00.000Z", "2026-02-01"],
    ["monthly", "2024-02-29T23:59:59.999Z", "2024-02-01"],
    ["monthly", "2024-03-01T00:00:00.000Z", "2024-03-01"],
    ["monthly", "2025-12-31T23:59:59.999Z", "2025-12-01"],
    ["monthly", "2026-01-01T00:00:00.000Z", "2026-01-01"],
    ["monthly", "1969-12-31T23:59:59.999Z", "1969-12-01"],
    ["monthly", "1903-02-14T00:00:00.000Z", "1903-02-01"],
  ] as const)("of a %s refill at %s is 00:00 UTC on %s", (interval, at, day) => {
    expect(new Date(latestBoundaryMs(interval, Date.parse(at))).toISOString()).toBe(`${day}T00:00:00.000Z`);
  });

  it.each(["Pacific/Kiritimati", "America/New_York", "Asia/Kathmandu"])(
    "does not depend on the machine being in %s",
    (zone) => {
      vi.stubEnv("TZ", zone);
      expect(new Date(Date.UTC(2026, 0, 1)).getTimezoneOffset(), "the zone is in force").not.toBe(0);
      const moments = [
        "2025-12-31T23:59:59.999Z",
        "2026-01-01T00:00:00.000Z",
        "2026-03-01T00:00:00.000Z",
        "2026-03-29T01:30:00.000Z",
      ];
      for (const at of moments) {
        expect(latestBoundaryMs("daily", Date.parse(at))).toBe(Date.parse(`${at.slice(0, 10)}T00:00:00Z`));
        expect(latestBoundaryMs("monthly", Date.parse(at))).toBe(Date.parse(`${at.slice(0, 7)}-01T00:00:00Z`));
      }
    },
  );

  it("is at or before the moment, and the next one after it", () => {
    fc.assert(
      fc.property(anyInterval, anyMoment, (interval, atMs) => {
        const index = boundaryIndex(interval, atMs);
        expect(boundaryMs(interval, index)).toBeLessThanOrEqual(atMs);
        expect(boundaryMs(interval, index + 1)).toBeGreaterThan(atMs);
      }),
    );
  });
});

describe("boundariesPassed", () => {
  it.each([
    ["daily", "2026-01-15T12:00:00.000Z", "2026-01-15T23:59:59.999Z", 0],
    ["daily", "2026-01-15T12:00:00.000Z", "2026-01-16T00:00:00.000Z", 1],
    ["daily", "2026-01-15T00:00:00.000Z", "2026-01-15T00:00:00.000Z", 0],
    ["daily", "2026-01-14T23:59:59.999Z", "2026-01-15T00:00:00.000Z", 1],
    ["daily", "2023-12-31T23:00:00.000Z", "2024-01-01T01:00:00.000Z", 1],
    ["daily", "2023-02-28T12:00:00.000Z", "2023-03-01T12:00:00.000Z", 1],
    ["daily", "2024-02-28T12:00:00.000Z", "2024-03-01T12:00:00.000Z", 2],
    ["daily", "2100-02-28T12:00:00.000Z", "2100-03-01T12:00:00.000Z", 1],
    ["daily", "2000-02-28T12:00:00.000Z", "2000-03-01T12:00:00.000Z", 2],
    ["daily", "2400-02-28T12:00:00.000Z", "2400-03-01T12:00:00.000Z", 2],
    ["daily", "2023-01-01T00:00:00.000Z", "2024-01-01T00:00:00.000Z", 365],
    ["daily", "2024-01-01T00:00:00.000Z", "2025-01-01T00:00:00.000Z", 366],
    ["daily", "1969-12-30T12:00:00.000Z", "1970-01-01T12:00:00.000Z", 2],
    ["monthly", "2026-01-31T23:59:59.999Z", "2026-02-01T00:00:00.000Z", 1],
    ["monthly", "2026-02-01T00:00:00.000Z", "2026-02-28T23:59:59.999Z", 0],
    ["monthly", "2024-02-29T00:00:00.000Z", "2024-02-29T23:59:59.999Z", 0],
    ["monthly", "2026-01-31T00:00:00.000Z", "2026-03-01T00:00:00.000Z", 2],
    ["monthly", "2025-12-31T23:59:59.999Z", "2026-01-01T00:00:00.000Z", 1],
    ["monthly", "2023-11-20T00:00:00.000Z", "2033-12-20T00:00:00.000Z", 121],
    ["monthly", "1969-11-30T12:00:00.000Z", "1970-01-01T00:00:00.000Z", 2],
    ["daily", "2026-01-16T00:00:00.000Z", "2026-01-15T12:00:00.000Z", 0],
    ["monthly", "2026-02-01T00:00:00.000Z", "2025-01-01T00:00:00.000Z", 0],
  ] as const)("counts of a %s refill, after %s up to %s, %i", (interval, since, until, passed) => {
    expect(boundariesPassed(interval, Date.parse(since), Date.parse(until))).toBe(passed);
  });

  it("adds up over any split of a span", () => {
    const threeMoments = fc
      .array(anyMoment, { minLength: 3, maxLength: 3 })
      .map((moments) => moments.sort((a, b) => a - b));
    fc.assert(
      fc.property(anyInterval, threeMoments, (interval, [from = 0, between = 0, to = 0]) => {
        const parts = boundariesPassed(interval, from, between) + boundariesPassed(interval, between, to);
        expect(parts).toBe(boundariesPassed(interval, from, to));
      }),
    );
  });

  it("is 0 whenever time goes backwards", () => {
    fc.assert(
      fc.property(anyInterval, anyMoment, fc.nat(), (interval, atMs, backMs) => {
        expect(boundariesPassed(interval, atMs, atMs - backMs)).toBe(0);
      }),
    );
  });
});
