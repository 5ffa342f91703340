import type { Ambient } from "../ambient/ambient.ts";
import { FrontStreams } from "../core/serve/front-streams.ts";
import type { ServeFrontDeps } from "../core/serve/serve-front.ts";
import { changesMax } from "../core/wire-management.ts";
import type { ForwardedAnswer, ForwardedCall } from "../domain/forwarded-call.ts";
import { MemoryHub } from "../ratelimit/local/window-hub.ts";
import { createAllEndpoints } from "../rpc/all-endpoints.ts";
import { createRunCall } from "../rpc/call.ts";
import { createCoreService } from "../rpc/core-service.ts";
import { createAnswerForwarded } from "../rpc/forwarded-calls.ts";
import { prepareLater } from "../rpc/validate.ts";
import { announceChanges } from "../store/announce-changes.ts";
import { audienceOf, type Change, type ChangeAudience } from "../store/changes.ts";
import { FeedRelay } from "../store/feed-relay.ts";
import type { Management } from "../store/management.ts";
import type { CheckRootKey } from "../store/root-access.ts";
import { ChangeFollower } from "./change-follower.ts";
import { connectChanges } from "./changes.ts";
import { type InternalAddress, type InternalListener, startInternalListener } from "./internal-listener.ts";
import type { LocalCore } from "./open-local-core.ts";
import type { StartOptions } from "./running-server.ts";

/** How long a stop waits for fronts to end their streams: permits in an unsent answer would be lost. */
const streamsEndMs = 5000;

interface ServedFronts extends Pick<ServeFrontDeps, "lateMs"> {
  /** Waits for fronts that are to act on a change before it is answered. */
  waitFor(streams: FrontStreams, change: Change): Promise<void>;
}

/** A core for fronts in other processes: edges, or the workers of this process. */
export async function serveCore(options: StartOptions, opened: LocalCore, { waitFor, lateMs }: ServedFronts) {
  const { settings, clock, log, random, teardown } = options;
  const { core, verdicts, checkRootKey, readHolders, manages, coordinator } = opened;
  const replica = Buffer.from(random.bytes(9)).toString("base64url");
  const relay = new FeedRelay({ clock, feed: core.changes });
  const follower = new ChangeFollower({
    ...options,
    feed: core.changes,
    cache: verdicts,
    onNews: (news, currentAtMs) => relay.onNews(news, currentAtMs),
  });
  teardown.add("change feed", () => follower.stop());
  const onChange = (change: Change) => {
    verdicts.invalidate(change);
    // A message of another replica says that there is news.
    follower.hurry();
  };
  const changes = await connectChanges({ ...options, onChange, replica });
  teardown.add("messages about changes", () => changes.close());
  const streams = new FrontStreams();
  const here = audienceOf(verdicts);
  const announce: ChangeAudience = {
    async broadcast(change) {
      await here.broadcast(change);
      await waitFor(streams, change);
    },
  };
  const carryOut = createCarryOut({ ...options, checkRootKey });
  const windows = new MemoryHub({
    nowMs: () => clock.monotonicMs(),
    windowsMax: settings.windowsMax,
    freeStandingMax: settings.freeWindowsMax,
    epoch: replica,
  });
  let isPrepared = false;
  const shutdown = new AbortController();
  const services = createCoreService({
    core: {
      ...core,
      checkRootKey,
      readHolders,
      async carryOut(call) {
        const changed: Change[] = [];
        const recorder = {
          async broadcast(change: Change) {
            if (changed.length <= changesMax) changed.push(change);
          },
        };
        const audiences = [recorder, announce, { broadcast: async () => follower.hurry() }, changes];
        const answer = await carryOut(call, announceChanges(manages.management, audiences));
        return answer && { answer, changed };
      },
      changes: relay,
      feedPosition: () => relay.position,
      windows,
    },
    streams,
    coordinator,
    clock,
    log,
    // Until it knows the root keys and the first news, fronts should ask another.
    isLedgerAway: () => !isPrepared || (opened.probe?.isAway ?? false),
    ledgerPathMs: () => core.pathMs ?? 0,
    lateMs,
    shutdownSignal: shutdown.signal,
  });
  return {
    /** Acts on a change in this process and in the fronts that are waited for. */
    announce,
    /** Resolves when fronts can use the core: to false if no caller can have a root key yet. */
    async prepare(isStopping: () => boolean): Promise<boolean> {
      await opened.usable;
      await follower.start();
      const hasRootKeys = await opened.prepare(isStopping);
      isPrepared = true;
      return hasRootKeys;
    },
    /** Serves the core at an address. */
    async listen(at: InternalAddress): Promise<InternalListener> {
      const internal = await startInternalListener({ ...options, ...at, services });
      teardown.add(at.path === undefined ? "internal port" : "link to workers", async () => {
        shutdown.abort();
        await internal.close();
      });
      return internal;
    },
    /** Asks fronts to leave. Resolves when they have, or after a while. */
    stopStreams: () => streams.stop(streamsEndMs),
  };
}

/**
 * Carries out management calls that fronts have forwarded: workers, or edges. They count them; here they are logged.
 * Resolves to undefined if there is no such method.
 */
export function createCarryOut(
  deps: Ambient & { readonly checkRootKey: CheckRootKey },
): (call: ForwardedCall, management: Management) => Promise<ForwardedAnswer | undefined> {
  const metrics = { ...deps.metrics, called() {} };
  const endpoints = createAllEndpoints({ core: deps });
  prepareLater(endpoints);
  return createAnswerForwarded(endpoints, createRunCall({ ...deps, metrics }));
}
