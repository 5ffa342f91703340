/** What the answer to a verification says about its limits and a refusal. Milliseconds, and Unix time. */
export interface CountedAnswer {
  readonly ratelimit?: AnsweredLimit | undefined;
  readonly ratelimits?: readonly NamedLimit[] | undefined;
  readonly owner?: { readonly ratelimits?: readonly NamedLimit[] | undefined } | undefined;
  readonly reason?: AnsweredReason | undefined;
}

interface AnsweredLimit {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
  readonly duration: number;
}

interface NamedLimit extends AnsweredLimit {
  readonly name: string;
}

interface AnsweredReason {
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
 * The headers that show an end user how its limits stand (draft-ietf-httpapi-ratelimit-headers), and when to come again after
 * a refusal. Undefined for an answer that has no limits and no refill to wait for.
 */
export function limitHeaders(answer: CountedAnswer, nowMs: number): LimitHeaders | undefined {
  const { ratelimit, ratelimits, owner, reason } = answer;
  if (reason?.nextRefillAt === undefined && !ratelimit && !ratelimits?.length && !owner?.ratelimits?.length)
    return undefined;
  const refusing = refusingLimit(answer);
  const retryAtMs = reason?.check === "limit" ? refusing?.reset : reason?.nextRefillAt;
  return {
    ...listsOf(visibleLimits(answer, refusing), nowMs),
    ...(retryAtMs !== undefined && { "retry-after": `${secondsUntil(retryAtMs, nowMs)}` }),
  };
}

function refusingLimit({ ratelimit, ratelimits, owner, reason }: CountedAnswer): NamedLimit | undefined {
  if (reason?.check !== "limit") return undefined;
  if (reason.name === undefined) return unnamedLimit(ratelimit);
  const named = reason.of === "owner" ? owner?.ratelimits : ratelimits;
  return named?.find(({ name }) => name === reason.name);
}

/** The limit that has refused comes first. No name comes twice: of two, the key's own limit is shown. */
function visibleLimits(answer: CountedAnswer, refusing: NamedLimit | undefined): Iterable<NamedLimit> {
  const { ratelimit, ratelimits = [], owner } = answer;
  const visible = new Map<string, NamedLimit>();
  for (const limit of [refusing, unnamedLimit(ratelimit), ...ratelimits, ...(owner?.ratelimits ?? [])])
    if (limit && !visible.has(limit.name)) visible.set(limit.name, limit);
  return visible.values();
}

function unnamedLimit(limit: AnsweredLimit | undefined): NamedLimit | undefined {
  return limit && { ...limit, name: "default" };
}

/** Both lists name the same limits: they end before the first one that does not fit into both. */
function listsOf(limits: Iterable<NamedLimit>, nowMs: number): LimitHeaders {
  let states = "";
  let policies = "";
  for (const { name, limit, remaining, reset, duration } of limits) {
    const start = `${states && ", "}"${name}"`;
    const state = `${start};r=${remaining};t=${secondsUntil(reset, nowMs)}`;
    const policy = `${start};q=${limit};w=${Math.ceil(duration / 1000)}`;
    if (states.length + state.length > listLengthMax || policies.length + policy.length > listLengthMax) break;
    states += state;
    policies += policy;
  }
  return states === "" ? {} : { ratelimit: states, "ratelimit-policy": policies };
}

function secondsUntil(atMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((atMs - nowMs) / 1000));
}
