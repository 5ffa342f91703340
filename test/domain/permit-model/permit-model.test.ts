import { describe, expect, it } from "vitest";
import { isDeep } from "../../support/deep.ts";
import { explore } from "./explore.ts";
import { mutants } from "./mutants.ts";
import { product, type Scope } from "./scope.ts";
import { narrow, scopes } from "./scopes.ts";

const scopeOf = (name: string) => scopes.get(name) as Scope;

/** In `npm test` the smallest scopes in which mutants are still found, at full size those that find more than we thought of. */
const explored: readonly (readonly [string, Scope])[] = isDeep
  ? [...scopes]
  : mutants.flatMap(({ name, scope, smallest }) =>
      smallest === undefined ? [] : [[`${scope}, as far as "${name}" needs`, narrow(scopeOf(scope), smallest)]],
    );
const controls = mutants.filter(({ smallest }) => isDeep || smallest !== undefined);

describe("in every state of real pools and the real ledger, no window is passed, outlived or left unfilled when", () => {
  it.each(explored)("%s", (name, scope) => {
    const { states, fault } = explore(scope, product);
    console.info(`${name}: ${states} states`);
    expect(fault).toBeUndefined();
    if (isDeep) expect(states).toBeGreaterThan(1_000);
  });
});

describe("the same check catches that", () => {
  it.each(controls)("$name", ({ name, breaks, scope, parts, smallest }) => {
    const { states, fault } = explore(isDeep ? scopeOf(scope) : narrow(scopeOf(scope), smallest ?? {}), parts);
    console.info(`${name}: ${fault?.broken}, ${(fault?.steps.length ?? 1) - 1} steps, found in ${states} states`);
    expect(fault?.broken).toContain(breaks);
  });
});
