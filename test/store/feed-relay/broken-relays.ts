import type { FeedNews, FeedPosition } from "../../../src/store/change-feed.ts";
import { FeedRelay, type FeedRelayDeps } from "../../../src/store/feed-relay.ts";
import type { CreateRelay, Relay } from "./relay-model.ts";

interface BrokenRelay {
  readonly mistake: string;
  readonly create: CreateRelay;
}

interface Heard {
  /** The news of all readings, in order. */
  readonly readings: readonly FeedNews[];
  readonly relay: FeedRelay;
  readonly deps: FeedRelayDeps;
}

type Read = FeedRelay["read"];

/** A relay that reads in another way. */
function reads(mistake: string, breakRead: (heard: Heard) => Read, bounds?: FeedRelayDeps["bounds"]): BrokenRelay {
  return {
    mistake,
    create(deps) {
      const readings: FeedNews[] = [];
      const relay = new FeedRelay({ ...deps, ...(bounds && { bounds }) });
      return {
        onNews(news, currentAtMs) {
          readings.push(news);
          relay.onNews(news, currentAtMs);
        },
        read: breakRead({ readings, relay, deps }),
      };
    },
  };
}

/** A relay that hears something else. */
function hears(
  mistake: string,
  change: (deps: FeedRelayDeps, ...news: Parameters<Relay["onNews"]>) => FeedNews | number,
) {
  const create: CreateRelay = (deps) => {
    const relay = new FeedRelay(deps);
    return {
      onNews(news, currentAtMs) {
        const changed = change(deps, news, currentAtMs);
        if (typeof changed === "number") relay.onNews(news, changed);
        else relay.onNews(changed, currentAtMs);
      },
      read: (since) => relay.read(since),
    };
  };
  return { mistake, create };
}

const unbounded = { readingsMax: 1e6, changesMax: 1e6, answerMax: 1e6, storeReadsMax: 1e6 };

function indexOf(readings: readonly FeedNews[], { heartbeat }: FeedPosition): number {
  return readings.findIndex(
    ({ position: { heartbeat: own } }) => own?.reader === heartbeat?.reader && own?.count === heartbeat?.count,
  );
}

/** Relays with one plausible mistake each. */
export const brokenRelays: readonly BrokenRelay[] = [
  reads(
    "finds a position of another relay in its log by the transaction's number",
    ({ readings, relay }) =>
      (since) => {
        if (since === undefined || indexOf(readings, since) >= 0) return relay.read(since);
        const before = readings.findLast(({ position }) => position.transaction <= since.transaction);
        return relay.read(before?.position ?? since);
      },
    unbounded,
  ),
  reads(
    "answers an unknown position with its newest position after the read",
    ({ readings, relay }) =>
      async (since) => {
        const isKnown = since === undefined || indexOf(readings, since) >= 0;
        const news = await relay.read(since);
        return isKnown ? news : { ...news, position: (readings.at(-1) as FeedNews).position };
      },
    unbounded,
  ),
  reads(
    "has dropped old readings and still takes their positions for known",
    ({ readings, relay }) =>
      (since) => {
        const isOld = since !== undefined && indexOf(readings.slice(0, -3), since) >= 0;
        return relay.read(isOld ? readings.at(-3)?.position : since);
      },
    unbounded,
  ),
  reads("tells a front at an unknown position that nothing has changed", ({ readings, relay }) => async (since) => {
    const news = await relay.read(since);
    const isKnown = since === undefined || indexOf(readings, since) >= 0;
    return isKnown || news.changed === "everything" ? news : { ...news, changed: [] };
  }),
  reads("tells only the latest reading", ({ readings, relay }) => async (since) => {
    const news = await relay.read(since);
    const latest = readings.at(-1) as FeedNews;
    const isKnown = since !== undefined && indexOf(readings, since) >= 0;
    return isKnown && news.changed !== "everything" ? { ...latest, ageMs: news.ageMs } : news;
  }),
  reads("does not know how old its news is", ({ relay }) => async (since) => ({
    ...(await relay.read(since)),
    hasImportedKeys: false,
    ageMs: 0,
  })),
  reads("takes silence for news", ({ relay }) => async (since) => {
    try {
      return await relay.read(since);
    } catch (error) {
      if (since === undefined) throw error;
      return { position: since, changed: [], hasImportedKeys: false, ageMs: 0 };
    }
  }),
  reads("moves on to its newest position when it tells a part", ({ readings, relay }) => async (since) => {
    const news = await relay.read(since);
    const isKnown = since !== undefined && indexOf(readings, since) >= 0;
    return isKnown ? { ...news, position: (readings.at(-1) as FeedNews).position } : news;
  }),
  hears("takes a reading for current as of its end", ({ clock }) => clock.monotonicMs()),
  hears("does not pass on that everything has changed", (_, news) => ({
    ...news,
    changed: news.changed === "everything" ? [] : news.changed,
  })),
];
