/**
 * Whether this is `npm run test:deep`. A test file that imports this runs in both commands, small in `npm test` and at full
 * size here. Files named `*.deep.test.ts` run only here.
 */
export const isDeep = process.env.LATCHKEY_TEST_DEEP === "on";

/** The size of a test in `npm test`, and its full size. */
export function sized<T>(small: T, full: T): T {
  return isDeep ? full : small;
}
