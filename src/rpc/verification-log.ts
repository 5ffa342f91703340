import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { VerifyKeyResponseSchema } from "../../gen/latchkey/v1/keys_pb.js";
import type { Ambient } from "../ambient/ambient.ts";
import type { LogFields } from "../ambient/log.ts";
import { createPacedLines } from "../ambient/paced-lines.ts";

/** Which verifications are logged. */
export type LoggedVerifications = "none" | "refused" | "all";

/** For each process. A line costs several times as much as a verification. */
const linesPerSecond = 100;

/** What a verification has found, for the log; undefined for other calls. Never the key. */
export function outcomeOf(method: string, answer: MessageInitShape<DescMessage> | undefined) {
  if (answer === undefined || method !== "KeysService/VerifyKey") return undefined;
  const { valid = false, code, keyId, reason } = answer as MessageInitShape<typeof VerifyKeyResponseSchema>;
  // Not the permissions that are missing: they are the caller's own text, in which there may be anything, a key too.
  const words = reason?.check === "permissions" ? "the key lacks a permission" : reason?.message;
  return { valid, fields: { code, keyId, reason: words } satisfies LogFields };
}

export type VerificationOutcome = NonNullable<ReturnType<typeof outcomeOf>>;

/** Logs verifications, a bounded number in a second. */
export class VerificationLog {
  /** Which ones. May change at any time. */
  logged: LoggedVerifications;
  readonly #log: ReturnType<typeof createPacedLines>;

  constructor(deps: Pick<Ambient, "clock" | "log">, logged: LoggedVerifications) {
    this.logged = logged;
    this.#log = createPacedLines(deps, "info", "verification", linesPerSecond);
  }

  add({ requestId, protocol }: { requestId: string; protocol: string }, { valid, fields }: VerificationOutcome): void {
    if (this.logged === "all" || (this.logged === "refused" && !valid)) {
      this.#log(() => ({ requestId, protocol, ...fields }));
    }
  }
}
