// One request, one answer, over fetch. It uses only what browsers, Node, Deno, Bun and workers have in common.
import type { CallOptions, MethodFacts } from "../../gen/latchkey/v1/client.ts";
import { errorOfAnswer, LatchkeyError } from "./errors.ts";

export interface TransportOptions {
  /** Where the service is, such as `https://keys.example.com`. */
  readonly baseUrl: string | URL;
  /**
   * Sent with every call. Verifications need one only where the service asks for it (`LATCHKEY_VERIFY_AUTH`); all other
   * methods do. Keep it out of browsers.
   */
  readonly rootKey?: string | undefined;
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** A request that can be sent, more than once if need be. */
export interface Prepared {
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

/** What has to be known of a method to send it. */
export type Target = Pick<MethodFacts, "path" | "fields" | "isPublic">;

/** W3C trace context. What does not look like it is left out: tracing makes no call fail. */
export type Trace = Pick<CallOptions, "traceparent" | "tracestate">;

const VISIBLE_ASCII = /^[!-~]+$/;
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;
const TRACESTATE = /^[ -~]{1,512}$/;

export function openTransport({ baseUrl, rootKey, fetch = globalThis.fetch }: TransportOptions) {
  const base = parseBaseUrl(baseUrl);
  // Checked here because fetch quotes a refused header in its error.
  if (rootKey !== undefined && !VISIBLE_ASCII.test(rootKey)) {
    throw new TypeError("rootKey must be visible ASCII characters only");
  }
  return { prepare, exchange };

  /** Prints a request. Throws for what cannot be sent. */
  function prepare(target: Target, request: object, idempotencyKey: string | undefined, trace: Trace = {}): Prepared {
    const headers = new Headers({ "content-type": "application/json", accept: "application/json" });
    if (rootKey) headers.set("authorization", `Bearer ${rootKey}`);
    else if (!target.isPublic) {
      throw new LatchkeyError("UNAUTHORIZED", "this method needs the client's rootKey, which is not set");
    }
    if (idempotencyKey !== undefined) {
      if (idempotencyKey.length > 255 || !VISIBLE_ASCII.test(idempotencyKey)) {
        throw new TypeError("idempotencyKey must be 1 to 255 visible ASCII characters");
      }
      headers.set("idempotency-key", idempotencyKey);
    }
    const { traceparent = "", tracestate = "" } = trace;
    if (TRACEPARENT.test(traceparent)) {
      headers.set("traceparent", traceparent);
      if (TRACESTATE.test(tracestate)) headers.set("tracestate", tracestate);
    }
    return { url: base + target.path, headers, body: printRequest(target.fields, request) };
  }

  /** Sends it, once. Throws a `LatchkeyError`, or the signal's reason. */
  async function exchange({ url, headers, body }: Prepared, signal: AbortSignal): Promise<object> {
    let response: Response;
    let text: string;
    try {
      // A redirect is not followed: it could carry the key to another host.
      response = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal });
      text = await response.text();
    } catch (cause) {
      signal.throwIfAborted();
      throw new LatchkeyError("NETWORK_ERROR", "the service could not be reached", { cause });
    }
    const json = parseJson(text);
    if (!response.ok || !isContainer(json) || Array.isArray(json))
      throw errorOfAnswer(response.status, response.headers, json);
    return json;
  }
}

/** Prints a request as JSON. NaN and Infinity are refused: JSON would turn them into null, which is another request. */
function printRequest(fields: readonly string[], request: object): string {
  const pathOf = new Map<unknown, string>();
  return JSON.stringify(request, function (this: unknown, name, value: unknown) {
    if (isContainer(value)) pathOf.set(value, joinPath(pathOf.get(this), name));
    if (typeof value === "number" && !Number.isFinite(value)) {
      const field = knownPath(fields, joinPath(pathOf.get(this), name)) || "the request";
      throw new TypeError(`${field} must not hold NaN or Infinity: JSON cannot carry them`);
    }
    return value;
  });
}

function joinPath(parent: string | undefined, name: string): string {
  return parent ? `${parent}.${name}` : name;
}

/** The part of the path that consists of contract fields. Other names are the caller's data and stay out of errors. */
function knownPath(fields: readonly string[], path: string): string {
  let known = path;
  while (known !== "" && !fields.includes(known)) known = known.slice(0, Math.max(0, known.lastIndexOf(".")));
  return known;
}

function parseBaseUrl(baseUrl: string | URL): string {
  const url = URL.canParse(String(baseUrl)) ? new URL(baseUrl) : undefined;
  const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
  if (!isPlain) throw new TypeError("baseUrl must be an http or https URL without credentials, query or fragment");
  return url.href.replace(/\/+$/, "");
}

// Undefined if it is not JSON. The parser's own error is dropped: it quotes the text, which may contain a new key.
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
