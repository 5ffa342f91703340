import { toWireKey, toWireOwner } from "../../../gen/resources/core/wire.ts";
import type { ForwardedCall } from "../../domain/forwarded-call.ts";
import { Secret } from "../../domain/secret.ts";
import type { WindowHub } from "../../ratelimit/local/window-hub.ts";
import type { PermitChannel } from "../../ratelimit/permit-channel.ts";
import type { FeedPosition } from "../../store/change-feed.ts";
import type { CheckRootKey, ReadHolders } from "../../store/root-access.ts";
import type { ChargeLedger } from "../../store/usage-ledger.ts";
import { digest as checkDigest, limitSubject, text } from "../checks.ts";
import type { Core } from "../core.ts";
import {
  type Answered,
  fromWireAsk,
  InvalidMessage,
  type ReceivedQuestion,
  rootKeyMax,
  toWireOutcome,
  toWirePermits,
} from "../wire.ts";
import { checkCharge } from "../wire-charges.ts";
import { checkPosition, plainPosition, toWireNews } from "../wire-feed.ts";
import { fromWireHoldersRead, toWireHolders } from "../wire-holders.ts";
import { type CarriedOut, fromWireManagement, toWireCarriedOut } from "../wire-management.ts";
import { toWireVerdict } from "../wire-verdict.ts";
import { fromWireReports, toWireWindows } from "../wire-windows.ts";

/** What a coordinator answers the calls of its edges with. */
export interface ServedCore extends Pick<Core, "keys" | "changes"> {
  /** What a text allows as a root key, as the store knows it now. */
  readonly checkRootKey: CheckRootKey;
  readonly readHolders: ReadHolders;
  /** Carries out a management call. Never rejects. Resolves to undefined if there is no such method. */
  readonly carryOut: (call: ForwardedCall) => Promise<CarriedOut | undefined>;
  readonly usage: ChargeLedger;
  readonly windows: Pick<WindowHub, "exchange">;
  /** How far the change feed is known; undefined if not at all. */
  readonly feedPosition: () => FeedPosition | undefined;
}

export interface CallContext {
  /** The permits of the edge that asks. */
  readonly permits: PermitChannel;
  /** By the coordinator's monotonic clock: what changes something is not executed after this. */
  readonly expiresAtMs: number;
  /** How long after its quickest moment that is. */
  readonly lateMs: number;
  readonly nowMs: number;
}

const notExecuted: Answered = { case: "notExecuted", value: {} };
const unknown: Answered = { case: "unknown", value: {} };

/**
 * Answers one call of an edge. What the edge sends is checked as if a stranger had sent it. It rejects with an
 * `InvalidMessage` for what no edge of this version sends, and with the failures of the core.
 */
export async function answerCall(
  question: ReceivedQuestion,
  core: ServedCore,
  { permits, expiresAtMs, lateMs, nowMs }: CallContext,
): Promise<Answered> {
  const isLate = nowMs > expiresAtMs;
  switch (question.case) {
    case "permits": {
      const { subject } = question.value;
      limitSubject(subject, "subject");
      return toWirePermits(await permits.exchange(subject, fromWireAsk(question.value), { expiresAtMs }));
    }
    case "inspection": {
      const { subject } = question.value;
      return toWirePermits(await permits.inspect(limitSubject(subject, "subject")));
    }
    case "windows":
      return toWireWindows(await core.windows.exchange(fromWireReports(question.value)));
    case "lookup": {
      const { digest, isForeign: foreign } = question.value;
      checkDigest(digest, "digest");
      const asOf = feedKnownTo(core);
      const key = await core.keys.findByDigest(digest, { foreign });
      return { case: "lookup", value: { ...(key && { key: toWireKey(key) }), ...asOf } };
    }
    case "owner": {
      const { ownerId } = question.value;
      text(ownerId, "ownerId");
      const asOf = feedKnownTo(core);
      const owner = await core.keys.findOwner(ownerId);
      return { case: "owner", value: { ...(owner && { owner: toWireOwner(owner) }), ...asOf } };
    }
    case "charge": {
      const { subject, ...run } = checkCharge(question.value);
      return isLate ? notExecuted : toWireOutcome(await core.usage.charge(subject, run, expiresAtMs));
    }
    case "feed": {
      const since = question.value.since && checkPosition(plainPosition(question.value.since));
      return { case: "feed", value: toWireNews(await core.changes.read(since)) };
    }
    case "rootKey":
      return { case: "rootKey", value: toWireVerdict(await core.checkRootKey(presented(question.value.rootKey))) };
    case "management": {
      const call = fromWireManagement(question.value);
      const { timeLeftMs = lateMs } = call;
      if (isLate || nowMs > expiresAtMs - lateMs + timeLeftMs) return notExecuted;
      const done = await core.carryOut(call);
      if (done === undefined) throw new InvalidMessage("a method that is not known");
      return toWireCarriedOut(done);
    }
    case "holders": {
      const name = fromWireHoldersRead(question.value);
      return toWireHolders(await core.readHolders(presented(question.value.rootKey), name));
    }
    default:
      return unknown;
  }
}

/** To be asked before the store is: its answer is as new as this, or newer. */
function feedKnownTo({ feedPosition }: ServedCore): { readonly feedTransaction: number; readonly feedEpoch: string } {
  const { transaction: feedTransaction = 0, epoch: feedEpoch = "" } = feedPosition() ?? {};
  return { feedTransaction, feedEpoch };
}

function presented(rootKey: string): Secret {
  if (rootKey.length > rootKeyMax) throw new InvalidMessage("an impossible root key");
  return new Secret(rootKey);
}
