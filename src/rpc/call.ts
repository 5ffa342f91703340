import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Ambient } from "../ambient/ambient.ts";
import type { LogFields } from "../ambient/log.ts";
import { createPacedWarning } from "../ambient/paced-lines.ts";
import { FailuresByAddress } from "../domain/failures-by-address.ts";
import type { EncodedMessage } from "../domain/forwarded-call.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { RootKeyRefused } from "../domain/root-key.ts";
import { Secret } from "../domain/secret.ts";
import { ChargeUnknown } from "../domain/unavailable.ts";
import { type AuthoriseDeps, type Caller, createAuthorise, requirePermission } from "../usecases/authorise.ts";
import { type Management, managementWithin } from "../usecases/management-within.ts";
import { ApiError, asRepeatable } from "./api-error.ts";
import type { ErrorLog } from "./error-log.ts";
import { ManagementQueue, type ManagementQueueDeps } from "./management-queue.ts";
import { toApiError } from "./to-api-error.ts";
import { outcomeOf, type VerificationLog } from "./verification-log.ts";

/** The protocol of a request. */
export type Protocol = "json" | "connect" | "grpc" | "grpc-web" | "authz";

/** The messages of a method, as far as they are alike for all methods. */
export type RequestMessage = MessageShape<DescMessage>;
export type AnswerMessage = MessageInitShape<DescMessage>;

/** One call of one method, the same for every protocol. */
export interface Call {
  readonly endpoint: Endpoint;
  readonly protocol: Protocol;
  readonly requestId: string;
  readonly headers: CallHeaders;
  /** The address of the caller's connection. Undefined if it is closed. A function, because hardly any call needs it. */
  remoteAddress(): string | undefined;
  /**
   * Reads the message from the body and checks the rules of its proto file. Throws `InvalidRequest` or `ApiError`. May be
   * called in a later turn of the event loop: the call holds the whole body until then.
   */
  read(): RequestMessage;
  /** The message as it came, to be read elsewhere. Throws as `read`. Absent where no management method is called. */
  encoded?(): EncodedMessage;
}

export const idempotencyHeader = "idempotency-key";

/** By lower-case name, as Node gives them. */
export type CallHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** One header by its lower-case name. A repeated header that Node gives as a list counts as absent. */
export function headerOf(headers: CallHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

/** A method and what answers it. */
export interface Endpoint {
  readonly method: DescMethod;
  /** With its service, such as `KeysService/VerifyKey`: methods of two services may have one name. */
  readonly name: string;
  /** The permission that a root key needs, such as `keys.create`. */
  readonly permission: string;
  /** The field of its request with the id of what it is about, such as `keyId`. */
  readonly target?: string | undefined;
  /** Whether callers without a root key may call it too. */
  readonly isPublic: boolean;
  /**
   * Each call of it by a root key is logged, and waits for its turn behind the others. Those only decide, and are called far
   * more often.
   */
  readonly isManagement: boolean;
  /** Whether it changes nothing. */
  readonly isRead: boolean;
  /** Whether it honours the header `Idempotency-Key`. */
  readonly isIdempotent: boolean;
  /** Absent: it is carried out where the core is, which is another process. */
  handle?(request: RequestMessage, context: HandlerContext): MaybePromise<AnswerMessage>;
}

/** What a method gets in addition to the message. */
export interface HandlerContext {
  readonly call: Pick<Call, "requestId" | "headers" | "endpoint">;
  /** Undefined for public methods, whatever was presented. */
  readonly caller: Caller | undefined;
  /** What the caller may do with stored data, for methods that manage it. */
  readonly management: Management;
  /** Says what the call was about, for its log line. */
  note(about: LogFields): void;
}

/** What the log says of a management call beside its outcome. */
class CallNotes {
  /** The id of the root key, once it is known. */
  actor: string | undefined;
  /** Whether the call was carried out elsewhere: it has its line there. */
  isForwarded = false;
  about: LogFields = {};
  readonly add = (about: LogFields): void => {
    this.about = { ...this.about, ...about };
  };

  /** Adds the id of the key or root key that the call made or was about. Ids of owners and APIs are callers' own texts. */
  addTarget({ target }: Endpoint, request: object, answer: object): void {
    for (const name of ["keyId", "rootKeyId"] as const) {
      const { [name]: id } = { ...(target === name && request), ...answer } as { readonly [name: string]: unknown };
      if (typeof id === "string") this.about = { [name]: id, ...this.about };
    }
  }
}

/**
 * Throws, or rejects with, only `ApiError`. Answers synchronously if the method does. `management`: what a management method is
 * carried out with, if it differs from call to call.
 */
export type RunCall = (call: Call, management?: Management) => MaybePromise<AnswerMessage>;

export interface RunCallDeps extends Pick<Ambient, "clock" | "log" | "metrics">, AuthoriseDeps, ManagementQueueDeps {
  /** Where the core is: what management methods are carried out with. */
  readonly management?: Management | undefined;
  /** Elsewhere: sends a call to the core, of a root key that is valid as far as is known here. `onAnswered`: the core has. */
  readonly forward?: ((call: Call, rootKey: Secret, onAnswered: () => void) => Promise<AnswerMessage>) | undefined;
  /** Absent: none are logged. */
  readonly verificationLog?: VerificationLog;
  /** Absent: none are logged. */
  readonly errorLog?: ErrorLog;
}

/** The steps of every call: authorise, read, answer, log, count. A management call first waits for its turn. */
export function createRunCall(deps: RunCallDeps): RunCall {
  const { clock, log, metrics, forward, verificationLog = { logged: "none" } } = deps;
  const authorise = createAuthorise(deps);
  const managementQueue = new ManagementQueue(deps);

  function answer(call: Call, notes?: CallNotes, management?: Management): MaybePromise<AnswerMessage> {
    const { endpoint } = call;
    if (endpoint.isPublic) return handle(call, undefined, undefined, management);
    const presented = presentedIn(headerOf(call.headers, "authorization"));
    return andThen(authorise(presented), (caller) => {
      if (notes !== undefined) notes.actor = caller.rootKeyId;
      requirePermission(caller, endpoint.permission);
      // Only now: an unauthorised caller learns nothing of its message, and its message goes nowhere.
      if (endpoint.handle !== undefined || forward === undefined) return handle(call, caller, notes, management);
      return forward(call, presented, () => {
        if (notes !== undefined) notes.isForwarded = true;
      });
    });
  }

  function handle(call: Call, caller?: Caller, notes?: CallNotes, stored?: Management): MaybePromise<AnswerMessage> {
    const { endpoint } = call;
    if (endpoint.handle === undefined) throw new Error(`nothing answers ${endpoint.name}`);
    const isManaging = endpoint.isManagement && stored !== undefined && caller !== undefined;
    const management = isManaging ? managementWithin(stored, caller) : noManagement;
    const request = call.read();
    const answered = endpoint.handle(request, { call, caller, management, note: notes?.add ?? noteNothing });
    if (notes === undefined) return answered;
    return andThen(answered, (answer) => {
      notes.addTarget(endpoint, request, answer);
      return answer;
    });
  }

  /** In an outage every call fails. */
  const warnUndecided = createPacedWarning(deps, "a call could not be decided");
  const warnRefused = createPacedWarning(deps, "a root key was refused");
  const refusals = new FailuresByAddress();

  /**
   * The answer to a root key that was checked and is not valid. A valid one never comes here, so callers who share an
   * address with somebody who guesses are served.
   */
  function refused(call: Call, refusal: RootKeyRefused): ApiError {
    metrics.rootKeyRefused();
    const address = call.remoteAddress();
    const retryAfterMs = refusals.count(address ?? "unknown", clock.monotonicMs());
    const error =
      retryAfterMs === 0
        ? toApiError(refusal)
        : new ApiError("TOO_MANY_REQUESTS", "too many wrong root keys came from your address; a valid one is served", {
            retryAfterMs,
            cause: refusal,
          });
    warnRefused(() => ({ ...fieldsOf(call, error), address }));
    return error;
  }

  function failed(call: Call, startedMs: number, thrown: unknown, notes?: CallNotes): ApiError {
    const error = thrown instanceof RootKeyRefused ? refused(call, thrown) : repeatableIf(call, toApiError(thrown));
    const isForwarded = notes?.isForwarded ?? false;
    const isInternal = error.code === "INTERNAL_SERVER_ERROR" && !isForwarded;
    if (isInternal) log.error("a call failed", error.cause, fieldsOf(call, error));
    else if (error.code === "SERVICE_UNAVAILABLE" && !isForwarded) {
      warnUndecided(() => ({ ...fieldsOf(call, error), ...reasonsOf(error) }));
    }
    // Each call of a valid root key has a line of its own, where it was carried out.
    if (!isInternal && (isForwarded || notes?.actor === undefined)) {
      const { requestId, protocol, endpoint } = call;
      deps.errorLog?.add(error.code, requestId, { method: endpoint.name, protocol });
    }
    account(call, startedMs, error.code, notes);
    return error;
  }

  function account(call: Call, startedMs: number, code: string, notes?: CallNotes, answer?: AnswerMessage): void {
    const method = call.endpoint.name;
    const seconds = (clock.monotonicMs() - startedMs) / 1000;
    metrics.called(method, call.protocol, code, seconds);
    if (notes?.isForwarded) return;
    // Only calls of valid root keys: strangers must not be able to fill the log.
    if (notes?.actor !== undefined) {
      log.info("call", lineOf(call, code, seconds, { actor: notes.actor, ...notes.about }));
      return;
    }
    if (verificationLog.logged === "none" && !log.debugEnabled) return;
    const outcome = outcomeOf(method, answer);
    if (log.debugEnabled) log.debug("call", lineOf(call, code, seconds, outcome?.fields));
    if (outcome !== undefined) deps.verificationLog?.add(call, outcome);
  }

  return function runCall(call, management = deps.management) {
    const startedMs = clock.monotonicMs();
    if (call.endpoint.isManagement) return runInTurn(call, startedMs, management);
    managementQueue.verificationBegins();
    let answered: ReturnType<typeof answer>;
    try {
      answered = answer(call);
    } catch (thrown) {
      throw failed(call, startedMs, thrown);
    }
    if (answered instanceof Promise) return accountLater(call, startedMs, answered);
    account(call, startedMs, "OK", undefined, answered);
    return answered;
  };

  /** Apart from `runCall`, where the closure would cost every verification. */
  function runInTurn(call: Call, startedMs: number, management: Management | undefined) {
    const notes = new CallNotes();
    const answering = managementQueue.run(() => answer(call, notes, management));
    return accountLater(call, startedMs, answering, notes);
  }

  function accountLater(call: Call, startedMs: number, answering: Promise<AnswerMessage>, notes?: CallNotes) {
    const succeed = (answered: AnswerMessage) => {
      account(call, startedMs, "OK", notes, answered);
      return answered;
    };
    return answering.then(succeed, (thrown: unknown) => {
      throw failed(call, startedMs, thrown, notes);
    });
  }
}

/** Whether the caller may send the same request again is known here: by the method, and by its idempotency key. */
function repeatableIf({ endpoint, headers }: Call, error: ApiError): ApiError {
  if (error.code !== "SERVICE_UNAVAILABLE") return error;
  const isRepeatable = endpoint.isManagement
    ? endpoint.isRead || (endpoint.isIdempotent && headers[idempotencyHeader] !== undefined)
    : !(error.cause instanceof ChargeUnknown);
  return isRepeatable ? asRepeatable(error) : error;
}

function noteNothing(): void {}

const refuse = () => Promise.reject(new Error("this method manages nothing"));
const noManagement: Management = { change: refuse, read: refuse };

/** A call in the log. Further digits of the seconds mean nothing. */
function lineOf({ requestId, protocol, endpoint }: Call, code: string, seconds: number, about?: LogFields): LogFields {
  return { requestId, method: endpoint.name, protocol, code, ...about, seconds: Number(seconds.toFixed(6)) };
}

function presentedIn(authorization: string | undefined): Secret {
  const token = authorization?.match(/^Bearer +([\x21-\x7e]+)$/i)?.[1];
  if (token === undefined) {
    throw new ApiError("UNAUTHORIZED", "this method needs the header Authorization: Bearer <ROOT_KEY>");
  }
  return new Secret(token);
}

function fieldsOf({ requestId, endpoint }: Call, { code }: ApiError): LogFields {
  return { requestId, method: endpoint.name, code };
}

/** The store's own message and the code of its cause; never the cause's message, which may repeat input. */
function reasonsOf({ cause }: ApiError): LogFields {
  const origin = cause instanceof Error ? (cause.cause as { code?: unknown } | undefined) : undefined;
  return {
    reason: cause instanceof Error ? cause.message : undefined,
    originCode: typeof origin?.code === "string" ? origin.code : undefined,
  };
}
