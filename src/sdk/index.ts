export type * from "../../gen/latchkey/v1/client.ts";
export { type ClientOptions, createClient } from "./client.ts";
export { LatchkeyError, type LatchkeyErrorCode } from "./errors.ts";
