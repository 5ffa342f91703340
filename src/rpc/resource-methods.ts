import type { DescMessage, Message, MessageInitShape } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { Updates } from "../../gen/latchkey/v1/updates.ts";
import { type Resource, resources } from "../domain/resources.ts";
import { Secret } from "../domain/secret.ts";
import type { IdempotencyKey } from "../usecases/idempotency.ts";
import { type CounterChange, updateRemaining, updateResource } from "../usecases/manage-resource.ts";
import type { Answers } from "../usecases/management-within.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { ApiError } from "./api-error.ts";
import { type HandlerContext, headerOf, idempotencyHeader } from "./call.ts";
import { changedFields, changesOf } from "./decoding/update-fields.ts";
import { changesIn, toResourceMessage } from "./field-messages.ts";
import { invalid } from "./invalid-request.ts";
import { fromCursor, type List, toCursor } from "./page-cursor.ts";

/* What methods of several services do in the same way. */

type Update = Message & {
  readonly $typeName: keyof Updates;
  readonly ifVersion?: number | undefined;
  readonly updateMask?: FieldMask | undefined;
};

interface PageRequest {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/**
 * The methods that several resources have, each of which turns its message into a call of a use case, and the result into a
 * message. `Schema`: that of the resource. `othersOf`: what it has beside its described fields and its counter.
 */
export function resourceMethods<Of extends Resource, Schema extends DescMessage>(
  resource: Of,
  deps: EventDeps,
  othersOf: (stored: NonNullable<Answers[Of]>) => object = () => ({}),
) {
  type Stored = NonNullable<Answers[Of]>;
  type Shape = MessageInitShape<Schema>;
  const idIn = (request: object) => (request as { readonly [name: string]: string })[`${resource}Id`] ?? "";
  const read = (stored: Stored) =>
    ({ ...toResourceMessage(resource, stored), ...othersOf(stored) }) as unknown as Shape;

  return {
    read,

    async get(request: Message, { management }: HandlerContext): Promise<Shape> {
      const stored = await management.read({ kind: resource as Resource, id: idIn(request) });
      return read(found(resource, stored) as Stored);
    },

    async list(request: PageRequest, context: HandlerContext, filters?: object) {
      const { items, cursor } = await page(`${resource}s`, request, context, filters);
      const messages = (items as unknown as readonly Stored[]).map(read);
      return { [`${resource}s`]: messages, cursor } as { [Name in `${Of}s`]: Shape[] } & { cursor: string | undefined };
    },

    /** `changes`: what the request changes, where that is not only what its message says. */
    async update(request: Update, context: HandlerContext, changes: object = updateIn(request, context)) {
      const parts = changesIn(resources[resource], changes);
      const asked = { id: idIn(request), ifVersion: request.ifVersion, changes: parts };
      const { management, note } = context;
      const updated = await updateResource(management, resource, asked, idempotencyKeyOf(context, request), deps);
      const stored = found(resource, updated) as Stored;
      note({ changed: changedFields(request) });
      return read(stored);
    },

    /** Changes the counter of a key or an owner. */
    async updateRemaining(request: Update & { readonly op: string }, context: HandlerContext) {
      const { value } = updateIn(request, context) as { readonly value?: number | null };
      if (value === null && request.op !== "set") throw invalid("value", "can be null with set only");
      // The message's rules allow no other operation.
      const change = { id: idIn(request), op: request.op as CounterChange["op"], value: value ?? undefined };
      const holder = resource as "key" | "owner";
      const { management, note } = context;
      const changed = await updateRemaining(management, holder, change, idempotencyKeyOf(context, request), deps);
      const counter = found(holder, changed);
      note({ changed: "remaining" });
      return counter;
    },
  };
}

/** What an update changes, by the names in its message. */
export function updateIn<Request extends Update>(request: Request, { call }: HandlerContext) {
  return changesOf(call.endpoint.method.input, request);
}

const names = { key: "key", owner: "owner", api: "API", rootKey: "root key" } as const;

/** What was found, made or deleted. Throws NOT_FOUND if there was nothing. */
export function found<Found>(resource: Resource, stored: Found | undefined | false): Found {
  if (stored === undefined || stored === false) throw new ApiError("NOT_FOUND", `there is no such ${names[resource]}`);
  return stored;
}

const limitDefault = 50;

/** A page of a list, newest first. */
export async function page<Of extends List>(
  kind: Of,
  { limit = limitDefault, cursor }: PageRequest,
  { management }: HandlerContext,
  filters: object = {},
): Promise<Answers[Of]> {
  const after = cursor === undefined ? undefined : fromCursor(kind, cursor);
  const found = await management.read({ ...filters, kind: kind as List, limit, after });
  return { ...found, cursor: found.cursor && toCursor(kind, found.cursor) } as Answers[Of];
}

/** The header `Idempotency-Key` of a call. It counts in the API that the request names, if its method is about one. */
export function idempotencyKeyOf({ call, caller }: HandlerContext, request: Message): IdempotencyKey | undefined {
  const value = headerOf(call.headers, idempotencyHeader);
  if (value === undefined || caller === undefined) return undefined;
  if (!/^[\x21-\x7e]{1,255}$/.test(value))
    throw invalid("Idempotency-Key", "must be 1 to 255 visible ASCII characters");
  const { name: method, target } = call.endpoint;
  const apiId = target === "apiId" ? (request as { readonly apiId?: string }).apiId : undefined;
  return { rootKey: caller.rootKey, value: new Secret(value), method, apiId };
}
