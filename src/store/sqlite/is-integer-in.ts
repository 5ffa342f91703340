/** For values of a data file, which holds what somebody put there. */
export function isIntegerIn(min: number, value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
