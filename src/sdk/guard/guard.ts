// What all middleware has in common: find the key of a request, have it verified, and say what to answer if it is refused.
import {
  type CallOptions,
  outcomeStatus,
  type RefusalReason,
  type VerifyKeyRequest,
} from "../../../gen/latchkey/v1/client.ts";
import { type LimitHeaders, limitHeaders } from "../../domain/limit-headers.ts";
import { checkOptions } from "../check-options.ts";
import { isLatchkeyError } from "../errors.ts";
import type { Verification } from "../verification.ts";

/** What the middleware needs of a client, as `createClient` makes it. */
export interface Verifier {
  readonly keys: { verifyKey(request: VerifyKeyRequest, options?: CallOptions): Promise<Verification> };
}

/** A key that may pass. Without the service (`degraded`) nothing is known of it. */
export type VerifiedKey = Verification & { readonly valid: true };

/** What a verification asks besides the key: permissions, costs, the end user's address, the API. */
export type Asked = Omit<VerifyKeyRequest, "key">;

export interface GuardOptions<Request> extends Asked {
  /** What depends on the request, such as `ip`; in place of the same fields beside it. */
  readonly perRequest?: ((request: Request) => Asked | Promise<Asked>) | undefined;
  /** Finds the key. Default: `Authorization: Bearer <key>`, else `x-api-key`. */
  readonly keyOf?: ((request: Request) => string | undefined | Promise<string | undefined>) | undefined;
  /** Called with the reason when a request is answered with 503. Default: `console.error`. */
  readonly log?: ((message: string, cause: unknown) => void) | undefined;
}

export interface RefusalOptions<Request> extends GuardOptions<Request> {
  /** Makes the JSON of a refusal. Default: `{ error: { code, message, requestId } }`. */
  readonly bodyOf?: ((refusal: Refusal, request: Request) => unknown) | undefined;
}

/** What a request is answered that may not pass. */
export interface Refusal {
  readonly status: 401 | 403 | 429 | 503;
  /** A code of `keys.verifyKey`; `MISSING_KEY`; or `UNAVAILABLE` where nobody could decide. */
  readonly code: string;
  /** In words, safe to show. */
  readonly message: string;
  /** Which check has refused the key. */
  readonly reason?: RefusalReason | undefined;
  /** Identifier of the verification in the service's log, if it was asked. */
  readonly requestId?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export type Guarded = Passed | { readonly refusal: Refusal };

/** A request that may pass. Its answer gets the headers, which say how the limits stand. */
export interface Passed {
  readonly key: VerifiedKey;
  readonly headers: LimitHeaders;
  readonly refusal?: undefined;
}

/** Longer texts are no keys, and may be too long for a request. */
const KEY_LENGTH_MAX = 16_384;

export type RequestGuard<Request> = (
  request: Request,
  headerOf: (name: string) => string | undefined,
) => Promise<Guarded>;

const optionNames: Readonly<Record<keyof RefusalOptions<unknown>, true>> = {
  apiId: true,
  permissions: true,
  remaining: true,
  ratelimit: true,
  ratelimits: true,
  ip: true,
  perRequest: true,
  keyOf: true,
  bodyOf: true,
  log: true,
};

/** Throws a `TypeError` for options that do not exist. */
export function createGuard<Request>(client: Verifier, options: RefusalOptions<Request>): RequestGuard<Request> {
  if (typeof client?.keys?.verifyKey !== "function") throw new TypeError("protect needs a client of createClient");
  checkOptions("protect", options, optionNames);
  const { perRequest, keyOf, log = logError, bodyOf, ...asked } = options;
  return async (request, headerOf) => {
    try {
      const key = keyOf ? await keyOf(request) : keyOfHeaders(headerOf);
      if (!key) return { refusal: missingKey };
      if (typeof key !== "string") throw new TypeError("keyOf must return a string");
      if (key.length > KEY_LENGTH_MAX) return { refusal: refusalOf("NOT_FOUND") };
      const asking = { ...asked, ...(perRequest && definedOf(await perRequest(request))), key };
      const answer = await client.keys.verifyKey(asking, traceOf(headerOf));
      if (answer.valid) return { key: answer as VerifiedKey, headers: limitHeaders(answer, Date.now()) ?? {} };
      if (answer.degraded) return undecided(answer.cause);
      return { refusal: refusalOf(answer.code, answer) };
    } catch (error) {
      if (isOnlyTheKeyWrong(error)) return { refusal: refusalOf("NOT_FOUND") };
      // Wrong use of the service, such as a wrong root key: nothing that the caller of this API has done.
      return undecided(error);
    }
  };

  function undecided(cause: unknown): Guarded {
    const { code, requestId } = isLatchkeyError(cause) ? cause : {};
    const remedy = code === "UNAUTHORIZED" ? " (set a valid rootKey in createClient)" : "";
    log(`a key could not be verified${remedy}`, cause);
    return { refusal: { ...unavailable, requestId, headers: withRequestId(requestId) } };
  }
}

/** The JSON of a refusal. */
export function bodyOf<Request>(refusal: Refusal, request: Request, options: RefusalOptions<Request>): unknown {
  if (options.bodyOf) return options.bodyOf(refusal, request);
  const { code, message, requestId } = refusal;
  return { error: { code, message, requestId } };
}

/** Those of the headers that an answer does not have yet: what the API says itself stays. */
export function missingOf(headers: Readonly<Record<string, string>>, has: (name: string) => boolean) {
  return Object.entries(headers).filter(([name]) => !has(name));
}

/** The value of a header of Node's, as it is for one that came several times. */
export function headersOfNode(headers: Readonly<Record<string, string | readonly string[] | undefined>>) {
  return (name: string): string | undefined => {
    const value = headers[name];
    return typeof value === "string" ? value : value?.[0];
  };
}

const missingKey: Refusal = {
  status: 401,
  code: "MISSING_KEY",
  message: "an API key is needed",
  headers: { "www-authenticate": "Bearer" },
};

const unavailable: Refusal = {
  status: 503,
  code: "UNAVAILABLE",
  message: "the API key could not be verified; try again later",
  headers: {},
};

function keyOfHeaders(headerOf: (name: string) => string | undefined): string | undefined {
  const [, bearer] = /^Bearer +([^ ]+) *$/i.exec(headerOf("authorization") ?? "") ?? [];
  return bearer ?? headerOf("x-api-key");
}

/**
 * The trace that the request belongs to. With OpenTelemetry's SDK loaded there is none: it adds a traceparent of
 * its own to what `fetch` sends, and two of them are none.
 */
function traceOf(headerOf: (name: string) => string | undefined): CallOptions {
  if (Symbol.for("opentelemetry.js.api.1") in globalThis) return {};
  return { traceparent: headerOf("traceparent"), tracestate: headerOf("tracestate") };
}

/** Without what is undefined: it must not take away what the route asks for. A promise or an instance would hide what it asks for. */
function definedOf(asked: Asked): Asked {
  if (!isPlainObject(asked)) throw new TypeError("perRequest must return a plain object");
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}

/** Also of another realm. Members of a class's instance may be behind its prototype, where nobody looks. */
function isPlainObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Whether the service takes the text for no key, such as one with a NUL character in it. A stranger has chosen that text. */
function isOnlyTheKeyWrong(error: unknown): boolean {
  const violations = isLatchkeyError(error) ? error.violations : [];
  return violations.length > 0 && violations.every(({ path }) => path === "key");
}

function refusalOf(code: string, answer?: Verification): Refusal {
  const status = (outcomeStatus as Readonly<Record<string, number>>)[code] ?? 403;
  const { reason, requestId } = answer ?? {};
  const message = reason?.message ?? "the API key is not valid";
  return { status: status as Refusal["status"], code, message, reason, requestId, headers: headersOf(status, answer) };
}

/** `x-request-id` is the verification's. An end user who asks why a key was refused can quote it. */
function headersOf(status: number, answer: Verification | undefined): Record<string, string> {
  return {
    ...(status === 401 && { "www-authenticate": 'Bearer error="invalid_token"' }),
    ...(answer && limitHeaders(answer, Date.now())),
    ...withRequestId(answer?.requestId),
  };
}

function withRequestId(requestId: string | undefined): Record<string, string> {
  return requestId === undefined ? {} : { "x-request-id": requestId };
}

const LOG_EVERY_MS = 1_000;
let silentUntilMs = 0;
let unlogged = 0;

/** In an outage every request fails: one line a second, without stack traces. */
function logError(message: string, cause: unknown): void {
  const nowMs = Date.now();
  if (nowMs < silentUntilMs) {
    unlogged++;
    return;
  }
  const others = unlogged === 0 ? "" : ` (and ${unlogged} more before)`;
  console.error(`latchkey: ${message}${others}: ${inWords(cause)}`);
  silentUntilMs = nowMs + LOG_EVERY_MS;
  unlogged = 0;
}

/** An error and what has caused it. */
function inWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${inWords(error.cause)}`;
}
