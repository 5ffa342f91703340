import type { JsonObject } from "@bufbuild/protobuf";
import { EXAMPLES } from "./examples.ts";
import { ERRORS, type Status } from "./http-facts.ts";
import { errorSchema, idempotencyKey, json, ref, sharedHeaders, sharedResponses } from "./openapi-shared.ts";
import { type Authz, readAuthz } from "./read-authz.ts";
import type { Contract, Message, Method, Route, Service } from "./read-contract.ts";
import type { Field } from "./read-field.ts";

/** Prints one OpenAPI 3.1 document for all services. */
export function emitOpenapi({ services, messages }: Contract, version: string): string {
  const paths: Record<string, Record<string, object>> = {};
  for (const service of services) {
    for (const method of service.methods) {
      for (const route of method.routes) {
        const operations = paths[route.path] ?? {};
        operations[route.verb.toLowerCase()] = operation(method, route, service, messages);
        paths[route.path] = operations;
      }
    }
  }
  const authz = readAuthz(messages);
  if (authz !== undefined) paths[authz.path] = { get: authzOperation(authz) };
  const document = {
    openapi: "3.1.0",
    info: {
      title: "Latchkey",
      version,
      description: "The same methods are served over gRPC, gRPC-Web and Connect.",
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    servers: [
      { url: "/", description: "The service that this document was read from." },
      { url: "http://127.0.0.1:8080", description: "A service on this machine that was started with its defaults." },
    ],
    tags: [
      ...services.map((service) => ({ name: tagOf(service), description: unwrap(service.comment) })),
      ...(authz ? [{ name: AUTHZ_TAG, description: "What proxies ask." }] : []),
    ],
    paths,
    components: {
      schemas: {
        ...Object.fromEntries(messages.map((message) => [message.name, schemaOf(message, messages)])),
        Error: errorSchema,
      },
      responses: sharedResponses,
      headers: sharedHeaders,
      parameters: { IdempotencyKey: idempotencyKey },
      securitySchemes: {
        rootKey: { type: "http", scheme: "bearer", description: "The root key of the service." },
        ...(authz && keySchemes(authz)),
      },
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** `KeysService` is shown as `Keys`. */
function tagOf(service: Service): string {
  return service.name.replace(/Service$/, "");
}

function operation(method: Method, route: Route, service: Service, messages: readonly Message[]): object {
  const example = EXAMPLES[method.path];
  const [summary, description] = splitSummary(unwrap(method.comment));
  const answer = messages.find((message) => message.name === method.response)?.comment;
  const request = messages.find((message) => message.name === method.request);
  const isUpdate = request?.fields.some((field) => field.change !== undefined);
  return {
    operationId: operationIdOf(route),
    tags: [tagOf(service)],
    summary,
    ...(description && { description }),
    security: method.isPublic ? [{}, { rootKey: [] }] : [{ rootKey: [method.permission] }],
    ...(route.verb === "GET"
      ? {
          parameters: request && parametersOf(request).map((field) => parameterOf(field, example?.request[field.name])),
        }
      : {
          ...(method.isIdempotent && { parameters: [ref("parameters", "IdempotencyKey")] }),
          requestBody: { required: true, content: json(method.request, example?.request) },
        }),
    responses: {
      200: {
        description: unwrap(answer || "The answer."),
        headers: { "x-request-id": ref("headers", "RequestId") },
        content: json(method.response, example?.response),
      },
      ...errorResponses([
        ...(route.verb === "POST" ? [415 as const] : []),
        ...(method.isPublic ? [] : [401 as const, 403 as const, 429 as const]),
        ...(request && namesStored(method, request) ? [404 as const] : []),
        ...(method.isIdempotent || isUpdate ? [409 as const] : []),
      ]),
    },
  };
}

const AUTHZ_TAG = "Proxies";

function authzOperation({ comment, parameters, rootKey, answers }: Authz): object {
  const [summary, description] = splitSummary(unwrap(comment));
  return {
    operationId: "authz",
    tags: [AUTHZ_TAG],
    summary,
    description,
    security: [{ key: [] }, { keyHeader: [] }],
    parameters: [
      ...parameters.map((field) => parameterOf(field, undefined)),
      { ...rootKey, in: "header", schema: { type: "string" } },
    ],
    responses: Object.fromEntries(
      answers.map(({ status, description, headers }) => [
        status,
        {
          description,
          headers: Object.fromEntries(
            headers.map(({ name, always, codes, ...header }) => [
              name,
              {
                ...header,
                ...(always && { required: true }),
                schema: { type: "string", ...(codes && { enum: codes }) },
              },
            ]),
          ),
        },
      ]),
    ),
  };
}

function keySchemes({ keyHeader }: Authz): object {
  const description = "The key that is verified.";
  return {
    key: { type: "http", scheme: "bearer", description },
    keyHeader: { type: "apiKey", in: "header", name: keyHeader, description },
  };
}

/** Unique: `keys.createKey`, and with `.get` where GET calls the method. */
function operationIdOf({ verb, path }: Route): string {
  return `${path.slice(path.lastIndexOf("/") + 1)}${verb === "GET" ? ".get" : ""}`;
}

/** Whether the request names something that may not exist. The id of a new owner is one that does not. */
function namesStored({ name }: Method, { fields }: Message): boolean {
  const isNeeded = ({ required, isAliased }: Field) => required || isAliased === true;
  const ids = fields.filter((field) => field.name === "keyId" || (isNeeded(field) && field.name.endsWith("Id")));
  return ids.length > 0 && name !== "createOwner";
}

/** A request by GET has no secrets. What is needed unless a secret is there has to be there. */
function parametersOf({ fields, rules }: Message): Field[] {
  const alternatives = (rules.oneOf ?? []) as { required: string[] }[];
  const isSecret = (name: string) => fields.some((field) => field.name === name && field.secret);
  const left = alternatives.filter(({ required }) => !required.some(isSecret));
  const needed = left.length === 1 ? left[0]?.required : [];
  return fields
    .filter(({ secret }) => !secret)
    .map((field) => ({ ...field, required: field.required || needed?.includes(field.name) === true }));
}

function parameterOf(field: Field, example: unknown): object {
  const { description, ...schema } = propertyOf(field);
  return {
    name: field.name,
    in: "query",
    required: field.required,
    ...(description && { description }),
    schema,
    ...(example !== undefined && { example }),
  };
}

function errorResponses(more: readonly Status[]): object {
  const statuses = new Set<Status>([400, 413, 503, ...more]);
  const entries = ERRORS.filter(({ status }) => statuses.has(status)).map(({ status, code, description }) => [
    status,
    { ...ref("responses", sharedResponseOf(status)), description: `\`${code}\`: ${description}` },
  ]);
  return { ...Object.fromEntries(entries), default: ref("responses", "Error") };
}

function sharedResponseOf(status: Status): keyof typeof sharedResponses {
  if (status === 429) return "TooManyRequests";
  return status === 503 ? "Unavailable" : "Error";
}

function schemaOf({ role, comment, fields, rules, readAs, formOf }: Message, messages: readonly Message[]): object {
  const required = fields.filter((field) => field.required).map((field) => field.name);
  // An update changes something. An item of a list that is recognised by its name need not.
  const mustChange = fields.some(({ change }) => change) && (formOf === undefined || required.length === 0);
  return {
    type: "object",
    ...(comment && { description: unwrap(comment) }),
    properties: {
      ...Object.fromEntries(fields.map((field) => [field.name, nullable(field)])),
      ...readOnlyProperties(fields, readAs, messages),
    },
    ...(required.length > 0 && { required }),
    ...rules,
    ...(mustChange && { minProperties: required.length + (rules.anyOf === undefined ? 1 : 2) }),
    // The service refuses what it does not know; callers must not, since answers may grow.
    ...(role === "request" && { additionalProperties: false }),
  };
}

/** What callers read in place of the message, and can send back. The service ignores it. */
function readOnlyProperties(fields: readonly Field[], readAs: readonly string[], messages: readonly Message[]): object {
  const read = messages.filter(({ name }) => readAs.includes(name)).flatMap((message) => message.fields);
  const more = read.filter(({ name }) => !fields.some((field) => field.name === name));
  return Object.fromEntries(more.map((field) => [field.name, { ...propertyOf(field), readOnly: true }]));
}

/**
 * In an update, `null` removes a field that can be absent; elsewhere it is taken for a list whose absence means all. In both an
 * empty list is refused, and generated clients leave out a list that can be null.
 */
function nullable(field: Field): JsonObject {
  const property = propertyOf(field);
  if (field.change !== "set or remove" && !field.absentMeansAll) return property;
  const { $ref, type, enum: values, ...others } = property;
  if ($ref !== undefined) return { anyOf: [{ $ref }, { type: "null" }], ...others };
  const orNull: JsonObject = {
    type: [type as string, "null"],
    ...(Array.isArray(values) && { enum: [...values, null] }),
  };
  return { ...orNull, ...others, ...(type === "array" && { minItems: Math.max(1, Number(others.minItems ?? 1)) }) };
}

function propertyOf({ type, comment, bounds }: Pick<Field, "type" | "comment" | "bounds">): JsonObject {
  const description: JsonObject = comment ? { description: unwrap(comment) } : {};
  switch (type.kind) {
    case "message":
      return { ...ref("schemas", type.name), ...description };
    case "struct":
      return { type: "object", ...description, additionalProperties: true };
    case "integer":
      return { type: "integer", format: type.format, ...description, ...bounds };
    case "list":
      return { type: "array", ...description, items: propertyOf({ ...type.items, comment: "" }), ...bounds };
    default:
      return { type: type.kind, ...description, ...bounds };
  }
}

// Proto comments are wrapped at a column; Markdown wants a paragraph on one line.
function unwrap(comment: string): string {
  return comment.replace(/(?<!\n)\n(?!\n)/g, " ");
}

function splitSummary(text: string): [summary: string, description: string] {
  const [sentence = text] = /^.*?[.!?](?=\s|$)/s.exec(text) ?? [];
  return [sentence.replace(/\.$/, ""), text.slice(sentence.length).trim()];
}
