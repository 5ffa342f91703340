export type * from "../../gen/latchkey/v1/keys_client.ts";
export { type ClientOptions, createClient } from "./client.ts";
export { LatchkeyError, type LatchkeyErrorCode } from "./errors.ts";
