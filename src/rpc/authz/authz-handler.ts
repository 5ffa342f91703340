import type { VerifyKeyRequest } from "../../../gen/latchkey/v1/keys_pb.js";
import type { Clock } from "../../ambient/clock.ts";
import { mapOutcome } from "../../domain/maybe-promise.ts";
import { ApiError } from "../api-error.ts";
import { type Call, type CallHeaders, type Endpoint, headerOf, type RunCall } from "../call.ts";
import { type HttpHandler, queryOf, type Responder } from "../http-handler.ts";
import { remoteAddressOf } from "../remote-address.ts";
import { sendAnswer } from "../respond.ts";
import { toApiError } from "../to-api-error.ts";
import { type AuthzVerification, missingKeyAnswer, undecidedAnswer, verifiedAnswer } from "./authz-answer.ts";
import { keyHeader, rootKeyHeader } from "./authz-contract.ts";
import { type AuthzParameters, readParameters } from "./authz-parameters.ts";

/** The longest key that `verifyKey` takes. A longer text is no key: only the end user is to blame for it. */
const keyLengthMax = 16_384;
/** Addresses whose parameters are remembered. An operator has configured a few. */
const rememberedMax = 100;

const missingKey = new ApiError("UNAUTHORIZED", "the request has no API key");
const keyTooLong = new ApiError("UNAUTHORIZED", "the API key is too long");

/**
 * Answers proxies that ask whether a request may pass, such as nginx with `auth_request`: by the status alone, to any HTTP
 * method. It is another way to call `verifyKey`: the same call, decided, logged and counted as every other.
 */
export function createAuthzPage(
  verifyKey: Endpoint,
  runCall: RunCall,
  { clock }: { readonly clock: Pick<Clock, "nowMs"> },
): Responder {
  const parametersOf = rememberParameters();

  return function decide(head, requestId) {
    const { headers } = head;
    const call: Call = {
      endpoint: verifyKey,
      protocol: "authz",
      requestId,
      headers: callHeadersOf(headers),
      remoteAddress: () => remoteAddressOf(head),
      read: () => readRequest(parametersOf(queryOf(head)), headers),
    };
    return mapOutcome(
      () => runCall(call),
      (response) => verifiedAnswer(response as AuthzVerification, requestId, clock.nowMs()),
      (thrown) => {
        if (thrown === missingKey) return missingKeyAnswer(requestId);
        if (thrown === keyTooLong) return verifiedAnswer({ code: "NOT_FOUND" }, requestId, clock.nowMs());
        const error = toApiError(thrown);
        // One that was checked and refused is the cause of the error.
        const lacksRootKey = error.code === "UNAUTHORIZED" && error.cause === undefined;
        return undecidedAnswer(lacksRootKey ? needsRootKey : error, requestId);
      },
    );
  };
}

/** Serves the page through Node. */
export function authzHandler(page: Responder): HttpHandler {
  return async function handle(req, res, requestId) {
    // The body, if a proxy sends one, is for somebody else.
    req.resume();
    await undefined;
    if (req.httpVersionMajor === 1 && !req.complete) {
      // The rest was malformed. Its refusal is sent, and nothing is charged.
      if (!req.socket.writable) return;
      // Proxies have announced bodies that never came. What follows on such a connection must not be taken for the body.
      res.setHeader("connection", "close");
    }
    sendAnswer(res, await page(req, requestId));
  };
}

/** The caller of this method is the proxy: `Authorization` is the end user's. */
function callHeadersOf(headers: CallHeaders): CallHeaders {
  const rootKey = headerOf(headers, rootKeyHeader.name);
  const { traceparent, tracestate } = headers;
  return { authorization: rootKey === undefined ? undefined : `Bearer ${rootKey}`, traceparent, tracestate };
}

const needsRootKey = new ApiError("UNAUTHORIZED", "the header X-Latchkey-Root-Key is needed");

/** The parameters come first, so that an operator who asks without a key sees what is wrong with them. */
function readRequest({ request, ipHeader }: AuthzParameters, headers: CallHeaders): VerifyKeyRequest {
  const key = keyOf(headers);
  if (!key) throw missingKey;
  if (key.length > keyLengthMax) throw keyTooLong;
  const ip = ipHeader === undefined ? request.ip : lastAddressOf(headerOf(headers, ipHeader));
  return { ...request, key, ip } as VerifyKeyRequest;
}

/** As the middleware of the client finds it. */
function keyOf(headers: CallHeaders): string | undefined {
  const [, bearer] = /^Bearer +([^ ]+) *$/i.exec(headerOf(headers, "authorization") ?? "") ?? [];
  return bearer ?? headerOf(headers, keyHeader);
}

/** Each proxy adds an address to the end of a list such as X-Forwarded-For. What comes before could be forged. */
function lastAddressOf(list = ""): string | undefined {
  return list.slice(list.lastIndexOf(",") + 1).trim() || undefined;
}

/** Reading parameters costs more than a verification. */
function rememberParameters(): (query: string) => AuthzParameters {
  const remembered = new Map<string, AuthzParameters>();
  return (query) => {
    let parameters = remembered.get(query);
    if (parameters === undefined) {
      parameters = readParameters(query);
      // Others than the operator may be able to ask, too.
      if (remembered.size === rememberedMax) remembered.clear();
      remembered.set(query, parameters);
    }
    return parameters;
  };
}
