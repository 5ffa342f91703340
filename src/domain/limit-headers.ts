/** What the answer to a verification says of its limits and of a refusal. Milliseconds, and Unix time. */
export interface CountedAnswer {
  readonly ratelimit?: ShownLimit | undefined;
  readonly ratelimits?: readonly NamedShownLimit[] | undefined;
  readonly owner?: { readonly ratelimits?: readonly NamedShownLimit[] | undefined } | undefined;
  readonly reason?: ShownReason | undefined;
}

interface ShownLimit {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
  readonly duration: number;
}

interface NamedShownLimit extends ShownLimit {
  readonly name: string;
}

interface ShownReason {
  readonly check: string;
  readonly of?: string | undefined;
  readonly name?: string | undefined;
  readonly nextRefillAt?: number | undefined;
}

export type LimitHeader = "ratelimit" | "ratelimit-policy" | "retry-after";
export type LimitHeaders = Readonly<Partial<Record<LimitHeader, string>>>;

/** Most characters of a list of limits. nginx takes 4 KB of headers, all of an answer together. */
const listLengthMax = 250;

/**
 * The headers that tell an end user how its limits stand (draft-ietf-httpapi-ratelimit-headers), and when to come again after
 * a refusal. Undefined for an answer that has no limits and no refill to wait for.
 */
export function limitHeaders(answer: CountedAnswer, nowMs: number): LimitHeaders | undefined {
  const { ratelimit, ratelimits, owner, reason } = answer;
  if (reason?.nextRefillAt === undefined && !ratelimit && !ratelimits?.length && !owner?.ratelimits?.length)
    return undefined;
  const limits = shownLimits(answer);
  const states = limits.map(({ name, remaining, reset }) => `"${name}";r=${remaining};t=${secondsUntil(reset, nowMs)}`);
  const policies = limits.map(({ name, limit, duration }) => `"${name}";q=${limit};w=${Math.ceil(duration / 1000)}`);
  const [first] = limits;
  const retryAtMs = reason?.check === "limit" ? first?.reset : reason?.nextRefillAt;
  return {
    ...(first && { ratelimit: listOf(states), "ratelimit-policy": listOf(policies) }),
    ...(retryAtMs !== undefined && { "retry-after": `${secondsUntil(retryAtMs, nowMs)}` }),
  };
}

/** The limit that has refused comes first. No name comes twice: of two, the key's own limit is shown. */
function shownLimits({ ratelimit, ratelimits = [], owner, reason }: CountedAnswer): readonly NamedShownLimit[] {
  const unnamed = ratelimit && { ...ratelimit, name: "default" };
  const ofOwner = owner?.ratelimits ?? [];
  const named = reason?.of === "owner" ? ofOwner : ratelimits;
  const refusing = reason?.name === undefined ? unnamed : named.find(({ name }) => name === reason.name);
  const shown = new Map<string, NamedShownLimit>();
  for (const limit of [reason?.check === "limit" ? refusing : undefined, unnamed, ...ratelimits, ...ofOwner])
    if (limit && !shown.has(limit.name)) shown.set(limit.name, limit);
  return [...shown.values()];
}

function listOf([first = "", ...others]: readonly string[]): string {
  return others.reduce(
    (list, item) => (list.length + item.length + 2 > listLengthMax ? list : `${list}, ${item}`),
    first,
  );
}

function secondsUntil(atMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((atMs - nowMs) / 1000));
}
