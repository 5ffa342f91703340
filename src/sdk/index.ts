export type {
  CallOptions,
  CreateKeyRequest,
  CreateKeyResponse,
  DeleteKeyRequest,
  DeleteKeyResponse,
  IdempotentCallOptions,
  KeysClient,
  Ratelimit,
  RatelimitState,
  Refill,
  VerifyKeyRequest,
  VerifyKeyResponse,
} from "../../gen/latchkey/v1/keys_client.ts";
export { type ClientOptions, createClient } from "./client.ts";
export { LatchkeyError, type LatchkeyErrorCode } from "./errors.ts";
