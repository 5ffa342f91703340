import {
  type CallOptions,
  type IdempotentCallOptions,
  type KeysClient,
  type LatchkeyClient,
  type MethodFacts,
  methods,
  type VerifyKeyRequest,
} from "../../gen/latchkey/v1/client.ts";
import { checkOptions } from "./check-options.ts";
import { isLatchkeyError, LatchkeyError } from "./errors.ts";
import { repeat } from "./repeat.ts";
import { openTransport, type TransportOptions } from "./transport.ts";
import { asDecided, decideAlone, isOutage, type OnUnavailable, type Verification } from "./verification.ts";

export interface ClientOptions extends TransportOptions {
  /**
   * The API that this client is for, in every call about keys that names none. A verification then refuses keys of other
   * APIs.
   */
  readonly apiId?: string | undefined;
  /** How long a call may take, its answer and repeats included. Default: 2000 for `verifyKey`, 10 000 for all others. */
  readonly timeoutMs?: number | undefined;
  /**
   * What a verification answers as `valid` when the service was not reached or could not decide: `"deny"`, `"allow"`, or what
   * a function says. A verification that asks for permissions or names an address is never allowed in this way. Default:
   * `"deny"`.
   */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** Calls the service. */
export interface Client extends Omit<LatchkeyClient, "keys"> {
  readonly keys: Keys;
}

/** The methods on keys. */
export interface Keys extends Omit<KeysClient, "verifyKey"> {
  /**
   * Verifies a key. It is sent exactly once, and throws for wrong use only: in an outage `degraded` is true and
   * `onUnavailable` has decided. Treat a `code` you do not know as what `valid` says.
   */
  verifyKey(request: VerifyKeyRequest, options?: CallOptions): Promise<Verification>;
}

/** A client whose `apiId` is set: calls about keys need not name it. */
export interface ClientOfApi extends Omit<Client, "keys"> {
  readonly keys: {
    [Method in keyof Keys]: Keys[Method] extends (request: infer Request, options?: infer Options) => infer Answer
      ? (request: WithoutApi<Request>, options?: Options) => Answer
      : never;
  };
}

type WithoutApi<Request> = Request extends { apiId: string } ? Omit<Request, "apiId"> & { apiId?: string } : Request;

const optionNames: Readonly<Record<keyof ClientOptions, true>> = {
  baseUrl: true,
  rootKey: true,
  fetch: true,
  apiId: true,
  timeoutMs: true,
  onUnavailable: true,
};

const VERIFY_TIMEOUT_MS = 2_000;
const TIMEOUT_MS = 10_000;

/**
 * Creates a client. A verification is sent exactly once: one whose answer was lost may have used a unit of the key. Other
 * calls are repeated where that is safe: reads, and changes under an `Idempotency-Key`, which the client makes where the
 * call brings none.
 *
 * Calls reject with a `LatchkeyError`, with the reason of the caller's own signal, or, before anything is sent, with a
 * `TypeError` or `RangeError` for impossible arguments. An invalid key is an answer, not an error.
 */
export function createClient(options: ClientOptions & { readonly apiId: string }): ClientOfApi;
export function createClient(options: ClientOptions): Client;
export function createClient(client: ClientOptions): Client {
  checkOptions("createClient", client, optionNames);
  const { apiId, onUnavailable = "deny" } = client;
  const transport = openTransport(client);
  if (client.timeoutMs !== undefined) checkTimeout(client.timeoutMs);
  checkOnUnavailable(onUnavailable);

  const groups = Object.entries(methods).map(([group, table]) => [group, callsOf(table)] as const);
  // The generator prints the table and the interface from the same methods.
  return Object.fromEntries(groups) as unknown as Client;

  function callsOf(table: Readonly<Record<string, MethodFacts>>): object {
    return Object.fromEntries(Object.entries(table).map(([name, method]) => [name, callOf(method)]));
  }

  function callOf(method: MethodFacts): Call {
    if (method === methods.keys.verifyKey) return verifyKey as Call;
    const { items } = method;
    if (items === undefined) return (request, options) => call(method, request, options);
    return (request, options) => listing(items, request, (page) => call(method, page, options));
  }

  async function verifyKey(request: VerifyKeyRequest, options?: CallOptions): Promise<Verification> {
    try {
      return asDecided(await call(methods.keys.verifyKey, request, options, VERIFY_TIMEOUT_MS));
    } catch (error) {
      if (!isLatchkeyError(error) || !isOutage(error)) throw error;
      return decideAlone(error, request, onUnavailable);
    }
  }

  async function call(
    method: MethodFacts,
    request: object,
    options: IdempotentCallOptions = {},
    defaultTimeoutMs = TIMEOUT_MS,
  ): Promise<object> {
    const { signal, timeoutMs = client.timeoutMs ?? defaultTimeoutMs, idempotencyKey, ...trace } = options;
    checkTimeout(timeoutMs);
    // The service would ignore it, and a repeat would not be safe.
    if (idempotencyKey !== undefined && !method.isIdempotent)
      throw new TypeError("this method takes no idempotencyKey");
    // A field that is undefined is absent. It must not take the client's API away.
    const namesApi = (request as { apiId?: unknown } | undefined)?.apiId !== undefined;
    const asked = method.takesApi && apiId !== undefined && !namesApi ? { ...request, apiId } : request;
    const sentKey = method.isIdempotent ? (idempotencyKey ?? randomKey()) : undefined;
    const prepared = transport.prepare(method, asked, sentKey, trace);
    const untilMs = Date.now() + timeoutMs;
    return withDeadline(timeoutMs, signal, (signal) => {
      signal.throwIfAborted();
      const exchange = () => transport.exchange(prepared, signal);
      return method.isIdempotent || method.isRead ? repeat(untilMs, signal, exchange) : exchange();
    });
  }
}

type Call = (request: object, options?: IdempotentCallOptions) => Promise<object>;

/** A page, and with `for await` all items from there on. */
function listing(items: string, request: object, read: (request: object) => Promise<object>): Promise<object> {
  const first = read(request);
  async function* all(): AsyncGenerator<unknown> {
    for (let reading = first; ; ) {
      const page = (await reading) as Record<string, unknown> & { cursor?: string };
      yield* page[items] as unknown[];
      if (page.cursor === undefined) return;
      reading = read({ ...request, cursor: page.cursor });
    }
  }
  return Object.assign(first, { [Symbol.asyncIterator]: all });
}

function checkOnUnavailable(value: unknown): void {
  // A misspelt "allow" must not be found out in an outage.
  if (value === "deny" || value === "allow" || typeof value === "function") return;
  throw new TypeError('onUnavailable must be "deny", "allow" or a function');
}

/** Not `randomUUID`, which browsers have on https only. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The longest time of a timer. With a longer one it would fire immediately.
const TIMEOUT_MS_MAX = 2_147_483_647;

function checkTimeout(timeoutMs: number): void {
  if (!(timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX)) {
    throw new RangeError(`timeoutMs must be more than 0 and at most ${TIMEOUT_MS_MAX}`);
  }
}

/** Runs a call until it ends, its time is over or the caller's signal fires, whichever is first. */
export async function withDeadline<T>(
  timeoutMs: number,
  caller: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController();
  // Not AbortSignal.timeout: its timer would outlive the call.
  const giveUp = () => deadline.abort(new LatchkeyError("TIMEOUT", `no answer within ${timeoutMs} ms`));
  const timer = setTimeout(giveUp, timeoutMs);
  try {
    return await call(caller ? AbortSignal.any([caller, deadline.signal]) : deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}
