// What HTTP adds to the contract and no descriptor says: error codes. Examples are in examples.ts.

/** Every code of an error response, with its status. */
export const ERRORS = [
  { status: 400, code: "BAD_REQUEST", description: "The body is not what the schema asks for." },
  { status: 401, code: "UNAUTHORIZED", description: "The root key is missing or wrong." },
  { status: 403, code: "FORBIDDEN", description: "The root key may not do this." },
  { status: 404, code: "NOT_FOUND", description: "What the request names does not exist." },
  {
    status: 405,
    code: "METHOD_NOT_ALLOWED",
    description: "The path does not answer this verb; `Allow` names those it answers.",
  },
  {
    status: 409,
    code: "CONFLICT",
    description:
      "Another body came with this `Idempotency-Key` before, or the present state does not allow the change.",
  },
  { status: 413, code: "PAYLOAD_TOO_LARGE", description: "The body is too large." },
  { status: 415, code: "UNSUPPORTED_MEDIA_TYPE", description: "The body is not `application/json`." },
  { status: 429, code: "TOO_MANY_REQUESTS", description: "Too many wrong root keys came from this address." },
  {
    status: 431,
    code: "REQUEST_HEADER_FIELDS_TOO_LARGE",
    description: "The path and the headers are too large.",
  },
  { status: 500, code: "INTERNAL_SERVER_ERROR", description: "The service failed in a way it does not know." },
  { status: 503, code: "SERVICE_UNAVAILABLE", description: "The service could not decide. Try again later." },
] as const;

export type Status = (typeof ERRORS)[number]["status"];

/** The status with which an API answers a request whose key was verified so. */
export const OUTCOMES = [
  { status: 200, code: "VALID" },
  { status: 401, code: "NOT_FOUND" },
  { status: 403, code: "FORBIDDEN" },
  { status: 401, code: "DISABLED" },
  { status: 401, code: "EXPIRED" },
  { status: 403, code: "INSUFFICIENT_PERMISSIONS" },
  { status: 429, code: "RATE_LIMITED" },
  { status: 429, code: "USAGE_EXCEEDED" },
] as const;
