import type { Explanation } from "../../src/domain/explanation.ts";
import type { PermitAsk } from "../../src/domain/permit-window.ts";
import type { RateLimit, RateLimitState } from "../../src/domain/rate-limit.ts";
import type { PermitAnswer } from "../../src/ratelimit/permit-channel.ts";
import { explainKey } from "../../src/usecases/explain-key.ts";
import type { Explain } from "./run-cases.ts";

type Deps = Parameters<Explain>[2];
type Inspect = (deps: Deps, subject: string, rule: RateLimit, cost: number) => Promise<RateLimitState | undefined>;

/** Explanations with one mistake each, which the random cases have to find. */
export const brokenExplanations: readonly (readonly [mistake: string, explain: Explain])[] = [
  ["ignores costs", (rootKey, request, deps) => explainKey(rootKey, { ...request, costs: undefined }, deps)],
  ["ignores the API", (rootKey, request, deps) => explainKey(rootKey, { ...request, apiId: undefined }, deps)],
  ["ignores the owner", withoutOwner],
  ["takes from limits", withInspect(take)],
  ["reads strict limits in memory", withInspect(peek)],
  ["does not recall what others hold", withInspect(askOnly)],
  ["does not wait for what it has recalled", withInspect(inspectOnce)],
  ["counts what others may have spent as available", withInspect(countOutstanding)],
  ["opens the window that it looks at", withInspect(openWindow)],
];

/** To which no key has an owner. */
function withoutOwner(...[rootKey, request, deps]: Parameters<Explain>): Promise<Explanation> {
  const readHolders: typeof deps.readHolders = async (...asked) => {
    const { counters, ...holders } = await deps.readHolders(...asked);
    return { ...holders, owner: undefined, counters: { key: counters.key } };
  };
  return explainKey(rootKey, request, { ...deps, readHolders });
}

/** With another way to look at strict limits. */
function withInspect(inspect: Inspect): Explain {
  return (rootKey, request, deps) => {
    const { limiter } = deps;
    const broken: typeof limiter = {
      ...limiter,
      inspect: (subject, rule, cost) =>
        rule.mode === "strict" ? inspect(deps, subject, rule, cost) : limiter.inspect(subject, rule, cost),
    };
    return explainKey(rootKey, request, { ...deps, limiter: broken });
  };
}

async function take({ limiter }: Deps, subject: string, rule: RateLimit, cost: number) {
  const state = await limiter.inspect(subject, rule, cost);
  if (cost > 0) (await limiter.take(subject, rule, cost)).commit();
  return state;
}

async function peek({ limiter }: Deps, subject: string, rule: RateLimit) {
  return limiter.peek(subject, rule);
}

async function askOnly({ channel }: Deps, subject: string, rule: RateLimit) {
  return stateOf(await channel.exchange(subject, askFor({})), rule);
}

async function inspectOnce({ channel }: Deps, subject: string, rule: RateLimit) {
  return stateOf(await channel.inspect(subject), rule);
}

async function countOutstanding({ channel }: Deps, subject: string, rule: RateLimit) {
  const answer = await channel.inspect(subject);
  const state = stateOf(answer, rule);
  if (state === undefined || answer.outcome !== "settled") return state;
  return { ...state, remaining: Math.min(state.limit, state.remaining + answer.outstanding) };
}

async function openWindow({ channel, limiter }: Deps, subject: string, rule: RateLimit, cost: number) {
  const state = await limiter.inspect(subject, rule, cost);
  const answer = await channel.exchange(subject, askFor({ waiting: [{ cost: 1, count: 1 }] }));
  if (answer.outcome === "settled")
    await channel.exchange(subject, askFor({ gen: answer.gen, returned: answer.granted }));
  return state;
}

function askFor(ask: Partial<PermitAsk>): PermitAsk {
  return { waiting: [], inAdvance: 0, gen: 0, returned: 0, spent: 0, holders: 1, ...ask };
}

function stateOf(answer: PermitAnswer, { durationMs }: RateLimit): RateLimitState | undefined {
  if (answer.outcome !== "settled") return undefined;
  const { limit, left, endsInMs, endsAtMs } = answer;
  return { limit, remaining: endsInMs === 0 ? limit : left, resetMs: endsInMs === 0 ? durationMs : endsAtMs };
}
