import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ChangeSchema,
  FeedNewsSchema,
  Change as WireChange,
  FeedNews as WireNews,
  FeedPosition as WirePosition,
} from "../../gen/latchkey/core/v2/core_pb.js";
import { Unavailable } from "../domain/unavailable.ts";
import type { FeedChange, FeedNews, FeedPosition } from "../store/change-feed.ts";
import type { Change } from "../store/changes.ts";
import { InvalidMessage } from "./wire.ts";

/*
 * The change feed as it goes over the internal streams. What a position lists as reported beyond it stays at the
 * coordinator: it means something in one session of the database only.
 */

/** What of a position goes over the streams, in both directions. */
export function plainPosition({ epoch, transaction, heartbeat }: FeedPosition | WirePosition) {
  return {
    epoch,
    transaction,
    ...(heartbeat && { heartbeat: { reader: heartbeat.reader, count: heartbeat.count } }),
  };
}

/** Throws on what no edge of ours sends. */
export function checkPosition(position: FeedPosition): FeedPosition {
  const numbers = [position.transaction, position.heartbeat?.count ?? 0];
  const texts = [position.epoch, position.heartbeat?.reader ?? ""];
  const isPossible =
    numbers.every((number) => Number.isSafeInteger(number) && number >= 0) &&
    texts.every((text) => /^[\x20-\x7e]{0,100}$/.test(text));
  if (!isPossible) throw new InvalidMessage("an impossible position");
  return position;
}

export function toWireNews(news: FeedNews): MessageInitShape<typeof FeedNewsSchema> {
  const { position, changed, hasImportedKeys, ageMs } = news;
  const everything = changed === "everything";
  const changes = everything ? [] : changed.map(toWireChange);
  return { position: plainPosition(position), everything, changes, hasImportedKeys, ageMs };
}

export function fromWireNews({ position, everything, changes, hasImportedKeys, ageMs }: WireNews): FeedNews {
  if (position === undefined) throw new Unavailable("the coordinator has sent news without a position");
  const changed = everything ? "everything" : (changes.flatMap(fromWireChange) as FeedChange[]);
  return { position: plainPosition(position), changed, hasImportedKeys, ageMs };
}

export function toWireChange(change: Change): MessageInitShape<typeof ChangeSchema> {
  switch (change.kind) {
    case "key": {
      const { keyId, digests } = change;
      if (digests === undefined) return { what: { case: "keyId", value: keyId } };
      return { what: { case: "key", value: { keyId, digests: [...digests] } } };
    }
    case "owner":
      return { what: { case: "owner", value: { ownerId: change.ownerId, isNew: change.isNew } } };
    case "rootKeys":
    case "imports":
      return { what: { case: change.kind, value: true } };
  }
}

/** Ignores unknown kinds: this version caches nothing of that kind. */
export function fromWireChange({ what }: WireChange): Change[] {
  switch (what.case) {
    case "key":
      return [{ kind: "key", keyId: what.value.keyId, digests: what.value.digests }];
    case "keyId":
      return [{ kind: "key", keyId: what.value, digests: undefined }];
    case "owner":
      return [{ kind: "owner", ownerId: what.value.ownerId, isNew: what.value.isNew }];
    case "rootKeys":
    case "imports":
      return [{ kind: what.case }];
    default:
      return [];
  }
}
