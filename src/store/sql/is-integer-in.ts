/** For values from a data file: any program may have written to it. */
export function isIntegerIn(min: number, value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
