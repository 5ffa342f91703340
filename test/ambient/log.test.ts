import { describe, expect, it } from "vitest";
import { createLog, type LogFormat } from "../../src/ambient/log.ts";
import { createPacedLines } from "../../src/ambient/paced-lines.ts";
import { TestClock } from "../support/test-clock.ts";

function logTo(format: LogFormat) {
  const lines: string[] = [];
  return { lines, log: createLog("info", (line) => lines.push(line), format) };
}

const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

describe("a log in text", () => {
  it("has the time, the level, the message and the fields in one line", () => {
    const { log, lines } = logTo("text");
    log.info("serving", { port: 8080, role: "all", path: "/a b", nothing: undefined, empty: "" });
    log.debug("not shown");
    expect(lines).toEqual([
      expect.stringMatching(new RegExp(`^${time} INFO  serving port=8080 role=all path="/a b" empty=""\n$`)),
    ]);
  });

  it("shows no control character of a value, whatever a terminal would do with it", () => {
    const { log, lines } = logTo("text");
    log.warn("odd", { name: "\u001b[2Jcleared\u009b1m\r\nnext", cause: 'say "x"=y' });
    expect(lines[0]).toMatch(/name="\\u001b\[2Jcleared\\u009b1m\\r\\nnext" cause="say \\"x\\"=y"\n$/);
    log.error("failed", new Error("\u001b[2J"), {});
    expect(lines[1]).not.toContain("\u001b");
  });

  it("has the stack of an error on lines of its own", () => {
    const { log, lines } = logTo("text");
    log.error("a call failed", new Error("broken"), { requestId: "req_1" });
    const [first, second, third] = (lines[0] ?? "").split("\n");
    expect(first).toMatch(new RegExp(`^${time} ERROR a call failed requestId=req_1$`));
    expect(second).toBe("    Error: broken");
    expect(third).toMatch(/^ {8}at /);
  });
});

describe("a log in JSON", () => {
  it("has the same in an object", () => {
    const { log, lines } = logTo("json");
    log.info("serving", { port: 8080 });
    expect(JSON.parse(lines[0] ?? "")).toEqual({ level: "info", time: expect.any(String), port: 8080, msg: "serving" });
  });
});

describe("lines that every call may cause", () => {
  it("are so many in a second at most, and the next one tells how many were left out", () => {
    const { log, lines } = logTo("json");
    const clock = new TestClock();
    const line = createPacedLines({ clock, log }, "info", "verification", 2);
    const say = (count: number) => {
      for (let i = 0; i < count; i++) line(() => ({ i }));
      return lines.splice(0).map((text) => JSON.parse(text) as { i: number; unlogged: number });
    };
    expect(say(5).map(({ i, unlogged }) => [i, unlogged])).toEqual([
      [0, 0],
      [1, 0],
    ]);
    clock.advance(999);
    expect(say(1)).toEqual([]);
    clock.advance(1);
    expect(say(3).map(({ i, unlogged }) => [i, unlogged])).toEqual([
      [0, 4],
      [1, 0],
    ]);
  });
});
