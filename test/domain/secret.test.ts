import { format, inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { Secret } from "../../src/domain/secret.ts";

const value = "hunter2-do-not-print";
const secret = new Secret(value);

const waysToPrint: readonly (readonly [string, () => string])[] = [
  ["String()", () => String(secret)],
  ["a template", () => `${secret}`],
  ["concatenation", () => "".concat(secret as unknown as string)],
  ["toString()", () => secret.toString()],
  ["toLocaleString()", () => secret.toLocaleString()],
  ["join of an array", () => [secret, secret].join()],
  ["JSON.stringify", () => JSON.stringify(secret)],
  ["JSON.stringify inside an object", () => JSON.stringify({ deep: [{ secret }] })],
  ["util.inspect", () => inspect(secret)],
  ["util.inspect inside an object, a map and a set", () => inspect({ deep: new Map([[secret, new Set([secret])]]) })],
  ["console.log's %s", () => format("%s", secret)],
  ["console.log's %o", () => format("%o", secret)],
  ["console.log's %O", () => format("%O", secret)],
  ["console.log's %j", () => format("%j", secret)],
  ["console.log of it alone", () => format(secret)],
  ["an error's message", () => inspect(new Error(`bad key ${secret}`))],
  ["an error's cause", () => inspect(new Error("failed", { cause: secret }))],
  ["an error's property", () => inspect(Object.assign(new Error("failed"), { secret }))],
];

/** Ways that print something else than the mask, but never the value. */
const waysAround: readonly (readonly [string, () => string])[] = [
  ["util.inspect with custom printing off", () => inspect(secret, { customInspect: false, showHidden: true })],
  ["Object.entries", () => inspect(Object.entries(secret))],
  ["own property names", () => inspect(Object.getOwnPropertyDescriptors(secret))],
  ["structuredClone", () => inspect(structuredClone(secret))],
  ["a spread copy", () => JSON.stringify({ ...secret })],
  ["a number", () => String(Number(secret))],
];

describe("a secret", () => {
  it.each(waysToPrint)("prints as [secret] through %s", (_, print) => {
    expect(print()).toContain("[secret]");
    expect(print()).not.toContain(value);
  });

  it.each(waysAround)("shows nothing of its value through %s", (_, print) => {
    expect(print()).not.toContain(value);
  });

  it("gives its value only through reveal()", () => {
    expect(secret.reveal()).toBe(value);
  });

  it("differs from a plain value, which every way of printing above would show", () => {
    const shown = inspect({ deep: new Error("failed", { cause: value }) });
    expect(shown).toContain(value);
  });
});
