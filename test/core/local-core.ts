import type { Ambient } from "../../src/ambient/ambient.ts";
import type { Core } from "../../src/core/core.ts";
import type { ServedCore } from "../../src/core/serve/answer-call.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { Coordinator } from "../../src/ratelimit/coordinator/coordinator.ts";
import { MemoryHub } from "../../src/ratelimit/local/window-hub.ts";
import { explainPermission } from "../../src/rpc/all-endpoints.ts";
import { createCarryOut } from "../../src/server/served-core.ts";
import { announceChanges } from "../../src/store/announce-changes.ts";
import type { FeedPosition } from "../../src/store/change-feed.ts";
import type { Change } from "../../src/store/changes.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import type { Store } from "../../src/store/store.ts";
import { createReadHolders } from "../../src/usecases/read-holders.ts";
import { checkTestRootKey } from "../support/test-root-key.ts";

export interface LocalCore {
  /** As a front in this process uses it. */
  readonly core: Core;
  /** As a coordinator serves it to edges. */
  readonly served: ServedCore;
  readonly coordinator: Coordinator;
}

/** A core in this process, on any store. The one root key is `testRootKey`. */
export function buildLocalCore(store: Store, ambient: Ambient, windowsMax = 10_000): LocalCore {
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
  };
  const checkRootKey = checkTestRootKey;
  const carryOut = createCarryOut({ ...ambient, checkRootKey });
  return {
    core: { ...shared, joinPermits: (onRecall) => coordinator.join(onRecall), windows: undefined, pathMs: undefined },
    served: {
      ...shared,
      checkRootKey,
      readHolders: createReadHolders({
        ...ambient,
        checkRootKey,
        management: store.management,
        permission: explainPermission,
      }),
      async carryOut(call) {
        const changed: Change[] = [];
        const recorder = { broadcast: async (change: Change) => void changed.push(change) };
        const answer = await carryOut(call, announceChanges(store.management, [recorder]));
        return answer && { answer, changed };
      },
      windows: new MemoryHub({ nowMs: () => clock.monotonicMs(), windowsMax, freeStandingMax: windowsMax, epoch }),
      feedPosition: () => feedPosition,
    },
    coordinator,
  };
}
