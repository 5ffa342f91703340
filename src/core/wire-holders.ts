import type {
  HoldersAnswer_Counter,
  HoldersAnswer as WireHolders,
  HoldersRead as WireRead,
} from "../../gen/latchkey/core/v2/core_pb.js";
import { fromWireKey, fromWireOwner, toWireKey, toWireOwner } from "../../gen/resources/core/wire.ts";
import type { StoredCounter, StoredHolders } from "../domain/explanation.ts";
import type { KeyName } from "../store/root-access.ts";
import { digest, impossible, text } from "./checks.ts";
import type { Answered, Question } from "./wire.ts";

/* What an explanation is made of, as it goes over the internal streams. */

export function toWireHoldersRead(rootKey: string, name: KeyName): Question {
  const by =
    "keyId" in name ? { case: "keyId" as const, value: name.keyId } : { case: "digest" as const, value: name.digest };
  return { case: "holders", value: { rootKey, by } };
}

/** Throws on what no edge of ours sends. */
export function fromWireHoldersRead({ by }: WireRead): KeyName {
  if (by.case === "keyId") return { keyId: text(by.value, "keyId") };
  if (by.case === "digest") return { digest: digest(by.value, "digest") };
  throw impossible("key");
}

export function toWireHolders({ key, owner, counters }: StoredHolders): Answered {
  return {
    case: "holders",
    value: {
      ...(key && { key: toWireKey(key) }),
      ...(owner && { owner: toWireOwner(owner) }),
      ...(counters.key && { counter: counters.key }),
      ...(counters.owner && { ownerCounter: counters.owner }),
    },
  };
}

/** As a coordinator has sent it: it is believed. */
export function fromWireHolders({ key, owner, counter, ownerCounter }: WireHolders): StoredHolders {
  return {
    ...(key && { key: fromWireKey(key) }),
    owner: owner && fromWireOwner(owner),
    counters: { key: counter && fromWireCounter(counter), owner: ownerCounter && fromWireCounter(ownerCounter) },
  };
}

function fromWireCounter({ remaining, nextRefillMs }: HoldersAnswer_Counter): StoredCounter {
  return { remaining, nextRefillMs };
}
