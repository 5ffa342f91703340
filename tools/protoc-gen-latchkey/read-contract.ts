// Reads what a proto file says about HTTP into plain values that the emitters print. Options that
// cannot be translated faithfully are refused here, so that a generated document is always true.
import type {
  DescExtension,
  DescField,
  DescMessage,
  DescMethod,
  DescService,
  FileRegistry,
  JsonObject,
} from "@bufbuild/protobuf";
import { getOption, hasOption, isMessage, toJson } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { getComments } from "@bufbuild/protoplugin";
import { field as fieldRules, message as messageRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type Field, isSecret, isStruct, isUpdateMask, type Options, type Role, readField } from "./read-field.ts";
import { type HotMethod, readHot } from "./read-hot.ts";
import { optionsIn, PACKAGE } from "./read-options.ts";
import { withUpdateForms } from "./update-forms.ts";
import { withAlias } from "./with-alias.ts";

/** All services as their JSON callers see them. */
export interface Contract {
  readonly services: readonly Service[];
  /** Every message that a method reaches, in the order in which a reader meets them. */
  readonly messages: readonly Message[];
}

/** The service of one proto file. */
export interface Service {
  /** Path of the proto file without its extension, such as `latchkey/v1/keys`. */
  readonly path: string;
  /** Such as `KeysService`. */
  readonly name: string;
  /** What its methods have in common in paths and in the SDK, such as `keys`. */
  readonly group: string;
  readonly comment: string;
  readonly methods: readonly Method[];
}

export interface Method {
  /** Name in JavaScript, such as `createKey`. */
  readonly name: string;
  /** Where POST calls it, such as `/v1/keys.createKey`. One of its routes. */
  readonly path: string;
  readonly routes: readonly Route[];
  /** The permission that a root key needs, such as `keys.create`. */
  readonly permission: string;
  /** Whether callers without a root key may call it too. */
  readonly isPublic: boolean;
  /** Whether it honours the header `Idempotency-Key`. */
  readonly isIdempotent: boolean;
  /** Whether it changes nothing. */
  readonly isRead: boolean;
  readonly comment: string;
  readonly request: string;
  readonly response: string;
  /** What its own codecs have to know, if it is hot. */
  readonly hot: HotMethod | undefined;
}

export interface Route {
  /** POST takes JSON in the body, GET takes query parameters. */
  readonly verb: "GET" | "POST";
  readonly path: string;
}

export interface Message {
  readonly name: string;
  /** Path of its proto file without its extension. */
  readonly path: string;
  readonly role: Role;
  readonly comment: string;
  readonly fields: readonly Field[];
  /** Keywords of JSON Schema that say which fields come together, such as `oneOf`. */
  readonly rules: JsonObject;
  /** Messages of answers that can be sent in its place. What they have more is ignored. */
  readonly readAs: readonly string[];
  /** For the form in which updates have a message: the name of the message. */
  readonly formOf?: string;
}

/** Reads the services of all files. Files that are not ours or serve nothing over HTTP are passed over. */
export function readContract(registry: FileRegistry, fileNames: readonly string[]): Contract {
  const found = fileNames.flatMap((name) => readService(registry, name) ?? []);
  const services = found.map(({ service }) => service);
  checkDistinct(services);
  return {
    services,
    messages: readMessages(
      found.flatMap(({ routed }) => routed),
      registry,
    ),
  };
}

function readService(registry: FileRegistry, fileName: string): { service: Service; routed: DescMethod[] } | undefined {
  const file = registry.getFile(fileName);
  const http = registry.getExtension("google.api.http");
  if (file?.proto.package !== PACKAGE || !http) return undefined;
  const [desc, second] = file.services.filter((each) => each.methods.some((method) => hasOption(method, http)));
  if (!desc) return undefined;
  if (second) throw new Error(`${second}: a file holds one service with HTTP routes, and ${desc} is one already`);

  // Asked of methods without a route too: the option guards every protocol.
  for (const method of desc.methods) readPermission(method, registry);
  const routed = desc.methods.filter((method) => hasOption(method, http));
  const group = groupOf(desc);
  const methods = routed.map((method) => readMethod(method, group, http, registry));
  return { service: { path: file.name, name: desc.name, group, comment: readComment(desc), methods }, routed };
}

/** `RootKeysService` is the group `rootKeys`. */
function groupOf({ name }: DescService): string {
  const plain = name.replace(/Service$/, "");
  return plain.charAt(0).toLowerCase() + plain.slice(1);
}

function readMethod(method: DescMethod, group: string, http: DescExtension, registry: FileRegistry): Method {
  if (method.methodKind !== "unary") throw new Error(`${method}: a route answers once, but the method streams`);
  const isPublic = readOption(method, "public", registry) === true;
  return {
    name: method.localName,
    path: pathOf(method, group),
    routes: readRoutes(method, group, http),
    permission: readPermission(method, registry),
    isPublic,
    isIdempotent: readIdempotent(method, isPublic, registry),
    isRead: method.idempotency === IdempotencyLevel.NO_SIDE_EFFECTS,
    comment: readComment(method),
    request: method.input.name,
    response: method.output.name,
    hot: readHot(method, registry),
  };
}

function readRoutes(method: DescMethod, group: string, http: DescExtension): Route[] {
  const value = getOption(method, http);
  const rule = http.message && isMessage(value) ? toJson(http.message, value) : null;
  const { additionalBindings = [], ...first } = Object(rule) as { additionalBindings?: object[] };
  const routes = [first, ...additionalBindings].map((binding) => readRoute(method, binding));
  const own = pathOf(method, group);
  if (!routes.some(({ verb, path }) => verb === "POST" && path === own)) {
    throw new Error(`${method}: one binding of google.api.http must be \`post: "${own}"\``);
  }
  if (routes.some(({ verb }) => verb === "GET")) checkReadable(method);
  return routes;
}

function readRoute(method: DescMethod, binding: object): Route {
  const { get, post, body, ...others } = binding as Record<string, unknown>;
  const isGet = typeof get === "string" && post === undefined && body === undefined;
  const isPost = typeof post === "string" && get === undefined && body === "*";
  if (isGet === isPost || Object.keys(others).length > 0) {
    throw new Error(
      `${method}: a binding of google.api.http must be \`get\`, or \`post\` with \`body: "*"\`, and nothing else`,
    );
  }
  const path = String(get ?? post);
  if (!/^\/v1\/[a-z][A-Za-z]*\.[a-z][A-Za-z]*$/.test(path)) {
    throw new Error(`${method}: the path of google.api.http must look like /v1/keys.createKey, without variables`);
  }
  return { verb: isGet ? "GET" : "POST", path };
}

/** The SDK groups methods as the paths do. */
function pathOf(method: DescMethod, group: string): string {
  return `/v1/${group}.${method.localName}`;
}

/** Whether GET can call the method: it changes nothing, and query parameters can hold its request without secrets. */
function checkReadable(method: DescMethod): void {
  if (method.idempotency !== IdempotencyLevel.NO_SIDE_EFFECTS) {
    throw new Error(`${method}: a method with \`get\` must have \`idempotency_level = NO_SIDE_EFFECTS\``);
  }
  for (const field of method.input.fields) {
    if (field.message) throw new Error(`${field}: a query parameter cannot hold it, so its method has no \`get\``);
    if (isSecret(field) && getOption(field, fieldRules).required) {
      throw new Error(
        `${field}: is a secret, which is never a query parameter, and required: the method has no \`get\``,
      );
    }
  }
}

function checkDistinct(services: readonly Service[]): void {
  const seen = new Set<string>();
  for (const { routes } of services.flatMap(({ methods }) => methods)) {
    for (const { verb, path } of routes) {
      if (seen.has(`${verb} ${path}`)) throw new Error(`${verb} ${path} would call two methods`);
      seen.add(`${verb} ${path}`);
    }
  }
}

function readPermission(method: DescMethod, registry: FileRegistry): string {
  const permission = readOption(method, "permission", registry);
  if (typeof permission !== "string" || !/^[a-z][A-Za-z]*\.[a-z][A-Za-z]*$/.test(permission)) {
    throw new Error(`${method}: option (${PACKAGE}.permission) must name a permission, such as keys.create`);
  }
  return permission;
}

function readIdempotent(method: DescMethod, isPublic: boolean, registry: FileRegistry): boolean {
  const isIdempotent = readOption(method, "idempotent", registry) === true;
  // A kept answer belongs to the root key that asked, and one that changes nothing needs not be kept.
  if (isIdempotent && (isPublic || method.idempotency === IdempotencyLevel.NO_SIDE_EFFECTS)) {
    throw new Error(`${method}: option (${PACKAGE}.idempotent) is for methods that change something with a root key`);
  }
  return isIdempotent;
}

/** Undefined if the method does not have the option. */
function readOption(method: DescMethod, name: string, registry: FileRegistry): unknown {
  const extension = registry.getExtension(`${PACKAGE}.${name}`);
  return extension && hasOption(method, extension) ? getOption(method, extension) : undefined;
}

function readMessages(methods: readonly DescMethod[], registry: FileRegistry): Message[] {
  const roles = new Map<DescMessage, Role>();
  for (const method of methods) {
    visit(method.input, "request");
    visit(method.output, "response");
  }
  const inputs = new Set(methods.map(({ input }) => input));
  const options = optionsIn(registry, new Set(Array.from(roles.keys(), ({ name }) => name)));
  const messages = [...roles].map(([message, role]) => {
    const isUpdate = checkUpdate(message, inputs.has(message), options);
    return readMessage(message, role, options, isUpdate);
  });
  return withUpdateForms(messages);

  function visit(message: DescMessage, role: Role): void {
    const known = roles.get(message);
    if (known === role) return;
    if (known) throw new Error(`${message}: reached from a request and from a response; give each its own message`);
    if (message.parent || message.file.proto.package !== PACKAGE) {
      throw new Error(`${message}: only top-level messages of ${PACKAGE} and google.protobuf.Struct have a JSON type`);
    }
    roles.set(message, role);
    for (const field of message.fields) {
      if (field.message && !isStruct(field.message) && !isUpdateMask(field)) visit(field.message, role);
    }
  }
}

/** Whether the message is an update. Throws where a part of one is missing or in the wrong place. */
function checkUpdate(message: DescMessage, isInput: boolean, options: Options): boolean {
  const masks = message.fields.filter((field) => isUpdateMask(field) || field.name === "update_mask");
  const changed = message.fields.find((field) => options.change(field) !== undefined);
  if (masks.length === 0) {
    if (changed) throw new Error(`${changed}: option (${PACKAGE}.change) needs a field update_mask beside it`);
    return false;
  }
  const [mask] = masks as [DescField];
  if (masks.length > 1 || mask.name !== "update_mask" || !isUpdateMask(mask) || mask.fieldKind !== "message") {
    throw new Error(`${mask}: an update has one field \`google.protobuf.FieldMask update_mask\``);
  }
  if (!isInput) throw new Error(`${message}: only the request of a method can be an update`);
  if (!changed) throw new Error(`${message}: an update without fields that have the option (${PACKAGE}.change)`);
  return true;
}

function readMessage(message: DescMessage, role: Role, options: Options, isUpdate: boolean): Message {
  const own = readOwnFields(message, role, options, isUpdate);
  return own.fields.reduce(withAlias, own);
}

function readOwnFields(message: DescMessage, role: Role, options: Options, isUpdate: boolean): Message {
  return {
    name: message.name,
    path: message.file.name,
    role,
    comment: readComment(message),
    fields: message.fields
      .filter((field) => !isUpdateMask(field))
      .map((field) => {
        const change = isUpdate ? options.change(field) : undefined;
        return readField(field, role, readComment(field), options, change);
      }),
    rules: readRules(message),
    readAs: options.readAs(message),
  };
}

// CEL rules of three forms have a counterpart in JSON Schema: "a needs b", "a or b", "one of a and b". The others are for the
// comments. Rules of the same form about one message would need `allOf`; there are none.
function readRules(message: DescMessage): JsonObject {
  const rules: JsonObject = {};
  for (const { expression } of getOption(message, messageRules).cel) {
    const [, not, first, operator, second] =
      /^(!?)has\(this\.(\w+)\) (\|\||!=) has\(this\.(\w+)\)$/.exec(expression) ?? [];
    if (!first || !second) continue;
    const [a, b] = [jsonName(first), jsonName(second)];
    const [keyword, value] = not
      ? ["dependentRequired", { [a]: [b] }]
      : [operator === "!=" ? "oneOf" : "anyOf", [{ required: [a] }, { required: [b] }]];
    if (keyword in rules) throw new Error(`${message}: has two rules that JSON Schema says by ${keyword}`);
    rules[keyword] = value;
  }
  return rules;

  function jsonName(name: string): string {
    const field = message.fields.find((each) => each.name === name);
    if (!field) throw new Error(`${message}: a rule names the field ${name}, which does not exist`);
    return field.jsonName;
  }
}

/** The comment above a declaration, line by line as written. */
function readComment(desc: DescService | DescMethod | DescMessage | DescMessage["fields"][number]): string {
  const lines = getComments(desc).leading?.split("\n") ?? [];
  return lines
    .map((line) => line.trim())
    .join("\n")
    .trim();
}
