import type { IncomingMessage, ServerResponse } from "node:http";
import { create } from "@bufbuild/protobuf";
import { VerifyKeyRequestSchema } from "../../../gen/latchkey/v1/keys_pb.js";
import type { Clock } from "../../ambient/clock.ts";
import { ApiError } from "../api-error.ts";
import { type Call, type CallHeaders, type Endpoint, headerOf, type RunCall } from "../call.ts";
import { type HttpHandler, queryOf } from "../http-handler.ts";
import { remoteAddressOf } from "../remote-address.ts";
import { toApiError } from "../to-api-error.ts";
import { type AuthzAnswer, answerOf, missingKeyAnswer, undecidedAnswer, type Verification } from "./authz-answer.ts";
import { type commonHeaders, keyHeader, type LatchkeyHeader, rootKeyHeader } from "./authz-contract.ts";
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
export function createAuthzHandler(
  verifyKey: Endpoint,
  runCall: RunCall,
  { clock }: { readonly clock: Pick<Clock, "nowMs"> },
): HttpHandler {
  const parametersOf = rememberParameters();

  async function decide(req: IncomingMessage, requestId: string): Promise<AuthzAnswer> {
    const { headers } = req;
    const call: Call = {
      endpoint: verifyKey,
      protocol: "authz",
      requestId,
      headers: callHeadersOf(headers),
      remoteAddress: () => remoteAddressOf(req),
      read: () => readRequest(parametersOf(queryOf(req)), headers),
    };
    try {
      return answerOf((await runCall(call)) as Verification, clock.nowMs());
    } catch (thrown) {
      if (thrown === missingKey) return missingKeyAnswer();
      if (thrown === keyTooLong) return answerOf({ code: "NOT_FOUND" }, clock.nowMs());
      const error = toApiError(thrown);
      // One that was checked and refused is the cause of the error.
      const lacksRootKey = error.code === "UNAUTHORIZED" && error.cause === undefined;
      return undecidedAnswer(lacksRootKey ? needsRootKey : error);
    }
  }

  return async function handle(req, res, requestId) {
    // The body, if a proxy sends one, is for somebody else.
    req.resume();
    await undefined;
    // Proxies have announced bodies that never came. What follows on such a connection must not be taken for the body.
    if (req.httpVersionMajor === 1 && !req.complete) res.setHeader("connection", "close");
    send(res, await decide(req, requestId), requestId);
  };
}

/** The caller of this method is the proxy: `Authorization` is the end user's. */
function callHeadersOf(headers: CallHeaders): CallHeaders {
  const rootKey = headerOf(headers, rootKeyHeader.name);
  const { traceparent, tracestate } = headers;
  return { authorization: rootKey === undefined ? undefined : `Bearer ${rootKey}`, traceparent, tracestate };
}

const needsRootKey = new ApiError("UNAUTHORIZED", "the header X-Latchkey-Root-Key is needed");

function send(res: ServerResponse, { status, headers }: AuthzAnswer, requestId: string): void {
  if (res.headersSent || res.destroyed) return;
  const own: Record<Exclude<keyof typeof commonHeaders, LatchkeyHeader>, string> = {
    "cache-control": "no-store",
    "x-request-id": requestId,
  };
  res.writeHead(status, ["content-length", "0", ...Object.entries({ ...own, ...headers }).flat()]);
  res.end();
}

/** The parameters come first, so that an operator who asks without a key sees what is wrong with them. */
function readRequest({ fields, ipHeader }: AuthzParameters, headers: CallHeaders) {
  const key = keyOf(headers);
  if (!key) throw missingKey;
  if (key.length > keyLengthMax) throw keyTooLong;
  const ip = ipHeader === undefined ? fields.ip : lastAddressOf(headerOf(headers, ipHeader));
  return create(VerifyKeyRequestSchema, { ...fields, key, ...(ip !== undefined && { ip }) });
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
