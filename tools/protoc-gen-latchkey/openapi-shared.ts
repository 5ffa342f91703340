// What the OpenAPI document has once, for all methods.
import { ERRORS } from "./http-facts.ts";

export const errorSchema = {
  type: "object",
  description: "The body of every error.",
  properties: {
    error: {
      type: "object",
      properties: {
        code: { type: "string", description: "Stable code of the error.", enum: ERRORS.map(({ code }) => code) },
        message: { type: "string", description: "What is wrong, for people. Never repeats what was sent." },
        docs: { type: "string", description: "Where the error is explained." },
        requestId: { type: "string", description: "Identifier of the request; the service's log carries it too." },
        violations: {
          type: "array",
          description: "The fields that are wrong, and why. Only with `BAD_REQUEST`.",
          items: {
            type: "object",
            properties: {
              path: { type: "string", description: "Path of the field, such as `refill.amount`." },
              message: { type: "string", description: "What is wrong. Never repeats the value that was sent." },
            },
            required: ["path", "message"],
          },
        },
      },
      required: ["code", "message", "docs", "requestId"],
    },
  },
  required: ["error"],
};

export const sharedHeaders = {
  RequestId: {
    description: "Identifier of the request; the service's log carries it too.",
    schema: { type: "string" },
  },
  RetryAfter: {
    description: "How many seconds to wait before trying again.",
    schema: { type: "integer", minimum: 0 },
  },
};

export const sharedResponses = {
  Error: {
    description: "The request failed.",
    headers: { "x-request-id": ref("headers", "RequestId") },
    content: json("Error"),
  },
  TooManyRequests: {
    description: "Too many wrong root keys came from this address. A valid one is served.",
    headers: { "x-request-id": ref("headers", "RequestId"), "Retry-After": ref("headers", "RetryAfter") },
    content: json("Error"),
  },
  Unavailable: {
    description: "The service could not decide. Try again later.",
    headers: { "x-request-id": ref("headers", "RequestId"), "Retry-After": ref("headers", "RetryAfter") },
    content: json("Error"),
  },
};

export const idempotencyKey = {
  name: "Idempotency-Key",
  in: "header",
  description: "Makes a repeated request return the first answer again. Remembered for 24 hours.",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-~]+$" },
};

export function json(schema: string, example?: object): object {
  return { "application/json": { schema: ref("schemas", schema), ...(example && { example }) } };
}

export function ref(section: string, name: string): { $ref: string } {
  return { $ref: `#/components/${section}/${name}` };
}
