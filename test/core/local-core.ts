import type { Ambient } from "../../src/ambient/ambient.ts";
import type { Core } from "../../src/core/core.ts";
import type { ServedCore } from "../../src/core/serve/answer-call.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { Coordinator } from "../../src/ratelimit/coordinator/coordinator.ts";
import { MemoryHub } from "../../src/ratelimit/local/window-hub.ts";
import type { FeedPosition } from "../../src/store/change-feed.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import type { Store } from "../../src/store/store.ts";
import { createRootAccess } from "../../src/usecases/root-access.ts";
import { checkTestRootKey } from "../support/test-root-key.ts";

export interface LocalCore {
  /** As a front in this process uses it. */
  readonly core: Core;
  /** As a coordinator serves it to edges. */
  readonly served: ServedCore;
  readonly coordinator: Coordinator;
}

/** A core in this process, on any store. The one root key is `testRootKey`. */
export function buildLocalCore(
  store: Store,
  ambient: Pick<Ambient, "clock" | "random" | "metrics">,
  windowsMax = 10_000,
): LocalCore {
  const { clock, random } = ambient;
  const coordinator = new Coordinator(store.permitLanes, ambient);
  const epoch = Buffer.from(random.bytes(9)).toString("base64url");
  let feedPosition: FeedPosition | undefined;
  const shared = {
    keys: store.keys,
    usage: new CoalescingUsageLedger(store.usageLanes, { ...ambient, waitingRoom: new WaitingRoom(50_000) }),
    changes: {
      async read(since: FeedPosition | undefined) {
        const news = await store.changes.read(since);
        feedPosition = news.position;
        return news;
      },
    },
    ...createRootAccess(checkTestRootKey, store.management, clock),
  };
  return {
    core: { ...shared, joinPermits: (onRecall) => coordinator.join(onRecall), windows: undefined, pathMs: undefined },
    served: {
      ...shared,
      windows: new MemoryHub({ nowMs: () => clock.monotonicMs(), windowsMax, freeStandingMax: windowsMax, epoch }),
      feedPosition: () => feedPosition,
    },
    coordinator,
  };
}
