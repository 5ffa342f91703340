import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  FeedNewsSchema,
  FeedPositionSchema,
  FeedNews as WireNews,
  FeedPosition as WirePosition,
} from "../../gen/latchkey/core/v2/core_pb.js";
import { Unavailable } from "../domain/unavailable.ts";
import type { FeedChange, FeedNews, FeedPosition } from "../store/change-feed.ts";
import { InvalidMessage } from "./wire.ts";

/*
 * The change feed as it goes over the internal streams. What was told beyond a position stays at the coordinator: it means
 * something in one session of the database only.
 */

export function toWirePosition(position: FeedPosition): MessageInitShape<typeof FeedPositionSchema> {
  const { epoch, transaction, heartbeat } = position;
  return { epoch, transaction, ...(heartbeat && { heartbeat }) };
}

export function fromWirePosition({ epoch, transaction, heartbeat }: WirePosition): FeedPosition {
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

export function toWireNews({
  position,
  changed,
  hasImportedKeys,
  ageMs,
}: FeedNews): MessageInitShape<typeof FeedNewsSchema> {
  const everything = changed === "everything";
  const changes = everything ? [] : changed;
  const keys = changes.filter((change) => change.kind === "key");
  const owners = changes.filter((change) => change.kind === "owner");
  return {
    position: toWirePosition(position),
    everything,
    keys: keys.map(({ keyId, digests }) => ({ keyId, digests: [...digests] })),
    owners: owners.map(({ ownerId, isNew }) => ({ ownerId, isNew })),
    rootKeys: changes.some(({ kind }) => kind === "rootKeys"),
    hasImportedKeys,
    ageMs,
  };
}

export function fromWireNews(news: WireNews): FeedNews {
  const { position, everything, keys, owners, rootKeys, hasImportedKeys, ageMs } = news;
  if (position === undefined) throw new Unavailable("the coordinator has told news without a position");
  const changes: FeedChange[] = keys.map(({ keyId, digests }) => ({ kind: "key", keyId, digests }));
  for (const { ownerId, isNew } of owners) changes.push({ kind: "owner", ownerId, isNew });
  if (rootKeys) changes.push({ kind: "rootKeys" });
  const changed = everything ? "everything" : changes;
  return { position: fromWirePosition(position), changed, hasImportedKeys, ageMs };
}
