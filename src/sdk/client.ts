// The client over fetch. It uses only what browsers, Node, Deno, Bun and workers have in common.
import { type IdempotentCallOptions, type LatchkeyClient, methods } from "../../gen/latchkey/v1/client.ts";
import { errorOfAnswer, LatchkeyError } from "./errors.ts";

export interface ClientOptions {
  /** Where the service is, such as `https://keys.example.com`. */
  readonly baseUrl: string | URL;
  /**
   * Sent with every call. Verifications need one only where the service asks for it (`LATCHKEY_VERIFY_AUTH`); all other
   * methods do. Keep it out of browsers.
   */
  readonly rootKey?: string | undefined;
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** How long a call may take, its answer included. Default: 10 000. */
  readonly timeoutMs?: number | undefined;
}

/** What the generated table says of a method. */
interface Method {
  readonly path: string;
  readonly isPublic: boolean;
  readonly isIdempotent: boolean;
  readonly fields: readonly string[];
}

const DEFAULT_TIMEOUT_MS = 10_000;
// The longest time of a timer. With a longer one it would fire immediately.
const TIMEOUT_MS_MAX = 2_147_483_647;
const VISIBLE_ASCII = /^[!-~]+$/;

/**
 * Creates a client. It never retries a call: a verification whose answer was lost may have used a unit of the key, and a
 * second one would use another. Use an `idempotencyKey` to repeat `createKey` safely.
 *
 * Calls reject with a `LatchkeyError`, with the reason of the caller's own signal, or, before anything is sent, with a
 * `TypeError` or `RangeError` for impossible arguments. An invalid key is an answer, not an error.
 */
export function createClient(client: ClientOptions): LatchkeyClient {
  const base = parseBaseUrl(client.baseUrl);
  const fetch = client.fetch ?? globalThis.fetch;
  const { rootKey, timeoutMs: clientTimeoutMs = DEFAULT_TIMEOUT_MS } = client;
  checkTimeout(clientTimeoutMs);
  // Checked here because fetch quotes a refused header in its error.
  if (rootKey !== undefined && !VISIBLE_ASCII.test(rootKey)) {
    throw new TypeError("rootKey must be visible ASCII characters only");
  }

  const groups = Object.entries(methods).map(([group, table]) => [group, callsOf(table)] as const);
  // The generator prints the table and the interface from the same methods.
  return Object.fromEntries(groups) as unknown as LatchkeyClient;

  function callsOf(table: Readonly<Record<string, Method>>): object {
    const calls = Object.entries(table).map(
      ([name, method]) =>
        [name, (request: object, options?: IdempotentCallOptions) => call(method, request, options)] as const,
    );
    return Object.fromEntries(calls);
  }

  async function call(method: Method, request: object, options: IdempotentCallOptions = {}): Promise<object> {
    const { signal, timeoutMs = clientTimeoutMs } = options;
    checkTimeout(timeoutMs);
    const headers = headersOf(method, options);
    const body = printRequest(method, request);
    // A redirect is not followed: it could carry the key to another host.
    const init = { method: "POST", headers, body, redirect: "manual" } as const;
    const answer = await withDeadline(timeoutMs, signal, async (signal) => {
      const response = await fetch(base + method.path, { ...init, signal });
      return { ok: response.ok, status: response.status, headers: response.headers, text: await response.text() };
    });

    const json = parseJson(answer.text);
    if (!answer.ok || !isObject(json)) throw errorOfAnswer(answer.status, answer.headers, json);
    return json;
  }

  function headersOf({ isPublic, isIdempotent }: Method, { idempotencyKey }: IdempotentCallOptions): Headers {
    const headers = new Headers({ "content-type": "application/json", accept: "application/json" });
    if (rootKey) headers.set("authorization", `Bearer ${rootKey}`);
    else if (!isPublic) {
      throw new LatchkeyError("UNAUTHORIZED", "this method needs the client's rootKey, which is not set");
    }
    if (idempotencyKey !== undefined) {
      // The service would ignore it, and a repeat would not be safe.
      if (!isIdempotent) throw new TypeError("this method takes no idempotencyKey");
      if (idempotencyKey.length > 255 || !VISIBLE_ASCII.test(idempotencyKey)) {
        throw new TypeError("idempotencyKey must be 1 to 255 visible ASCII characters");
      }
      headers.set("idempotency-key", idempotencyKey);
    }
    return headers;
  }
}

/** Prints a request as JSON. NaN and Infinity are refused: JSON would turn them into null, which is another request. */
function printRequest({ fields }: Method, request: object): string {
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

/** Runs an exchange until it ends, the deadline passes or the caller's signal fires, whichever is first. */
async function withDeadline<T>(
  timeoutMs: number,
  caller: AbortSignal | undefined,
  exchange: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController();
  // Not AbortSignal.timeout: its timer would outlive the call.
  const timer = setTimeout(() => deadline.abort(), timeoutMs);
  try {
    return await exchange(caller ? AbortSignal.any([caller, deadline.signal]) : deadline.signal);
  } catch (cause) {
    caller?.throwIfAborted();
    if (deadline.signal.aborted) throw new LatchkeyError("TIMEOUT", `no answer within ${timeoutMs} ms`);
    throw new LatchkeyError("NETWORK_ERROR", "the service could not be reached", { cause });
  } finally {
    clearTimeout(timer);
  }
}

function parseBaseUrl(baseUrl: string | URL): string {
  const url = URL.canParse(String(baseUrl)) ? new URL(baseUrl) : undefined;
  const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
  if (!isPlain) throw new TypeError("baseUrl must be an http or https URL without credentials, query or fragment");
  return url.href.replace(/\/+$/, "");
}

function checkTimeout(timeoutMs: number): void {
  if (!(timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX)) {
    throw new RangeError(`timeoutMs must be more than 0 and at most ${TIMEOUT_MS_MAX}`);
  }
}

// Undefined if it is not JSON. The parser's own error is dropped: it quotes the text, which may contain a new key.
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is object {
  return isContainer(value) && !Array.isArray(value);
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
