import { describe, expect, it } from "vitest";
import { longEnough, problemsOf } from "./problems-of.ts";

describe("settings", () => {
  it.each([
    ["127.0.0.1", "127.0.0.1", "127.0.0.1"],
    ["localhost", "LOCALHOST", "LOCALHOST"],
    ["0.0.0.0", "127.0.0.1", "127.0.0.1"],
    ["::", "127.0.0.1", "127.0.0.1"],
    ["::", "localhost", "localhost"],
    ["::1", "::", "::1"],
    ["0.0.0.0", "::", "0.0.0.0"],
    ["127.0.0.1", "127.0.0.2", undefined],
    ["0.0.0.0", "::1", undefined],
    // It may be ::1.
    ["localhost", "127.0.0.1", undefined],
  ])("with one port for both on %s and %s: both would listen on %s", (HOST, LATCHKEY_INTERNAL_HOST, shared) => {
    const trusted = { LATCHKEY_INTERNAL_SECRET: longEnough, LATCHKEY_INTERNAL_PRIVATE: "1" };
    const problemsWith = (port: string) =>
      problemsOf({ ...trusted, HOST, LATCHKEY_INTERNAL_HOST, PORT: port, LATCHKEY_INTERNAL_PORT: port });
    const problem = `PORT must differ from LATCHKEY_INTERNAL_PORT: both would listen on ${shared}`;
    expect(problemsWith("9000")).toEqual(shared === undefined ? [] : [problem]);
    expect(problemsWith("0")).toEqual([]);
  });
});
