import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { Updates } from "../../gen/latchkey/v1/updates.ts";
import { type Resource, resources } from "../domain/resources.ts";
import { type CounterChange, updateRemaining, updateResource } from "../usecases/manage-resource.ts";
import type { Answers } from "../usecases/management-within.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { ApiError } from "./api-error.ts";
import type { CallContext } from "./call.ts";
import { changedFields, changesOf } from "./decoding/update-fields.ts";
import { changesIn } from "./field-messages.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { InvalidRequest } from "./invalid-request.ts";
import { fromCursor, type List, toCursor } from "./page-cursor.ts";

/* What methods of several services do in the same way. */

const names = { key: "key", owner: "owner", api: "API", rootKey: "root key" } as const;

/** What was found, made or deleted. Throws NOT_FOUND if there was nothing. */
export function found<Found>(resource: Resource, stored: Found | undefined | false): Found {
  if (stored === undefined || stored === false) throw new ApiError("NOT_FOUND", `there is no such ${names[resource]}`);
  return stored;
}

type Update = Message & {
  readonly $typeName: keyof Updates;
  readonly ifVersion?: number | undefined;
  readonly updateMask?: FieldMask | undefined;
};

/** `changes`: what the request changes, where that is not only what its message says. Answers it as it is then. */
export async function update<Of extends Resource>(
  resource: Of,
  id: string,
  [desc, request]: readonly [DescMessage, Update],
  context: CallContext,
  deps: EventDeps,
  changes: object = changesOf(desc, request),
) {
  const asked = { id, ifVersion: request.ifVersion, changes: changesIn(resources[resource], changes) };
  const { management } = context;
  const updated = await updateResource(management, resource, asked, idempotencyKeyOf(context, request), deps);
  const stored = found(resource, updated);
  context.note({ changed: changedFields(request) });
  return stored;
}

/** Changes the counter of a key or an owner. */
export async function changeRemaining(
  holder: "key" | "owner",
  id: string,
  [desc, request]: readonly [DescMessage, Update & { readonly op: string }],
  context: CallContext,
  deps: EventDeps,
) {
  const { value } = changesOf(desc, request) as { readonly value?: number | null };
  if (value === null && request.op !== "set")
    throw new InvalidRequest([{ path: "value", message: "can be null with set only" }]);
  // The message's rules allow no other operation.
  const change = { id, op: request.op as CounterChange["op"], value: value ?? undefined };
  const { management } = context;
  const changed = await updateRemaining(management, holder, change, idempotencyKeyOf(context, request), deps);
  const counter = found(holder, changed);
  context.note({ changed: "remaining" });
  return counter;
}

const limitDefault = 50;

/** A page of a list, newest first. */
export async function page<Of extends List>(
  kind: Of,
  { limit = limitDefault, cursor }: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  { management }: CallContext,
  filters: object = {},
): Promise<Answers[Of]> {
  const after = cursor === undefined ? undefined : fromCursor(kind, cursor);
  const found = await management.read({ ...filters, kind: kind as List, limit, after });
  return { ...found, cursor: found.cursor && toCursor(kind, found.cursor) } as Answers[Of];
}
