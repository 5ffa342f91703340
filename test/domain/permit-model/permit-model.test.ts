import { describe, expect, it } from "vitest";
import { explore } from "./explore.ts";
import { mutants } from "./mutants.ts";
import { product, type Scope } from "./scope.ts";
import { scopes } from "./scopes.ts";

describe("in every state of real pools and the real ledger, no window is passed, outlived or left unfilled when", () => {
  it.each([...scopes])("%s", (name, scope) => {
    const { states, fault } = explore(scope, product);
    console.info(`${name}: ${states} states`);
    expect(fault).toBeUndefined();
    expect(states).toBeGreaterThan(1_000);
  });
});

describe("the same check catches that", () => {
  it.each(mutants)("$name", ({ name, breaks, scope, parts }) => {
    const { states, fault } = explore(scopes.get(scope) as Scope, parts);
    console.info(`${name}: ${fault?.broken}, ${(fault?.steps.length ?? 1) - 1} steps, found in ${states} states`);
    expect(fault?.broken).toContain(breaks);
  });
});
