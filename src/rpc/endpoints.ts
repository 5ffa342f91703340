import {
  type DescMethod,
  type DescService,
  getOption,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { hot, idempotent, permission, public$, target } from "../../gen/latchkey/v1/options_pb.js";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { Endpoint, HandlerContext } from "./call.ts";

/** What answers the methods of a service, by their names in JavaScript. */
export type Handlers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]: (
    request: MessageShape<Service["method"][Name]["input"]>,
    context: HandlerContext,
  ) => MaybePromise<MessageInitShape<Service["method"][Name]["output"]>>;
};

/** Methods that a front answers itself: they decide, or need its local windows. All others run where the core is. */
type FrontMethod = "verifyKey" | "explainKey" | "limit";

export type FrontHandlers<Service extends DescService> = Pick<
  Handlers<Service>,
  Extract<keyof Service["method"], FrontMethod>
>;
export type ManagementHandlers<Service extends DescService> = Omit<Handlers<Service>, FrontMethod>;

/** The methods of a service with what answers them here. Throws if one of them states no permission. */
export function createEndpoints<Service extends DescService>(
  service: Service,
  handlers: Partial<Handlers<Service>>,
): Endpoint[] {
  return service.methods.map((method) => {
    const handle = handlers[method.localName as keyof Service["method"]] as NonNullable<Endpoint["handle"]> | undefined;
    return {
      method,
      name: nameOf(method),
      permission: permissionOf(method),
      target: targetOf(method),
      isPublic: getOption(method, public$),
      isManagement: !getOption(method, public$) && !getOption(method, hot),
      isRead: method.idempotency === IdempotencyLevel.NO_SIDE_EFFECTS,
      isIdempotent: getOption(method, idempotent),
      ...(handle && { handle }),
    };
  });
}

export function nameOf({ parent, name }: DescMethod): string {
  return `${parent.name}/${name}`;
}

export function permissionOf(method: DescMethod): string {
  const stated = getOption(method, permission);
  if (stated === "") throw new Error(`${method} does not state the permission that it needs`);
  return stated;
}

/** The name in JavaScript of the field that its option names. */
function targetOf(method: DescMethod): string | undefined {
  const stated = getOption(method, target);
  if (stated === "") return undefined;
  const field = method.input.fields.find(({ name }) => name === stated);
  if (field === undefined) throw new Error(`${method} is about ${stated}, which its request does not have`);
  return field.localName;
}
