import { afterAll, beforeAll, expect, type TestContext } from "vitest";
import { runningTest } from "../support/test-end.ts";

/** Made before the first test of the file, or of the `describe` that this is called in, and undone after the last one. */
export function share<Value>(make: () => Promise<Value>): () => Value {
  let made: { readonly value: Value } | undefined;
  const ends: (() => unknown)[] = [];
  beforeAll(async () => {
    const whole = { onTestFinished: (end: () => unknown) => void ends.push(end) } as unknown as TestContext;
    made = { value: await runningTest.run(whole, make) };
  });
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return () => (made ?? expect.fail("it is made before the first test")).value;
}
