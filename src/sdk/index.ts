export type * from "../../gen/latchkey/v1/client.ts";
export { type Client, type ClientOfApi, type ClientOptions, createClient, type Keys } from "./client.ts";
export { type FieldViolation, isLatchkeyError, LatchkeyError, type LatchkeyErrorCode } from "./errors.ts";
export type { DecideAlone, Decided, OnUnavailable, Undecided, Verification } from "./verification.ts";
