/**
 * Whether this is `npm run test:deep`. A test file that imports this runs in both commands, small in `npm test` and at full
 * size here. Files named `*.deep.test.ts` run only here.
 */
export const isDeep = process.env.LATCHKEY_TEST_DEEP === "on";

/** The size of a test in `npm test`, and its full size. */
export function sized<T>(small: T, full: T): T {
  return isDeep ? full : small;
}

/** How long something may take that is promised within a time, on a machine that runs other tests at the same time. */
export function withRoom(promisedMs: number): number {
  return promisedMs * 1.5;
}
