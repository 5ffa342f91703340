/** Ids, secrets and digests that the service makes: each time others. So is `start`, the beginning of a secret. */
const made = /^(?:[a-z]+_)*[0-9A-Za-z]{20,}$/;
/** A moment in milliseconds. */
const momentMin = 1e12;

/**
 * Where a documented answer differs from the one that came. Ids, secrets and moments are others each time: they have to be
 * of the same kind, and `learn` is told what stands for what.
 */
export function differences(
  documented: unknown,
  actual: unknown,
  learn: (documented: string, actual: string) => void,
  path = "$",
): string[] {
  if (typeof documented === "string" && typeof actual === "string") {
    if (documented === actual) return [];
    const areMade = path.endsWith(".start") || (made.test(documented) && made.test(actual));
    if (!areMade || kindOf(documented) !== kindOf(actual))
      return [`${path}: ${documented} is documented, ${actual} came`];
    learn(documented, actual);
    return [];
  }
  if (typeof documented === "number" && typeof actual === "number") {
    const areMoments = documented > momentMin && actual > momentMin;
    return documented === actual || areMoments ? [] : [`${path}: ${documented} is documented, ${actual} came`];
  }
  if (isObject(documented) && isObject(actual)) {
    const names = new Set([...Object.keys(documented), ...Object.keys(actual)]);
    return [...names].flatMap((name) => differences(documented[name], actual[name], learn, `${path}.${name}`));
  }
  return Object.is(documented, actual) ? [] : [`${path}: ${documented} is documented, ${actual} came`];
}

function kindOf(text: string): string {
  return /^[a-z]+_/.exec(text)?.[0] ?? "";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
