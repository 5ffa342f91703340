import type { Management } from "./management.ts";

/** A key does not create its API: an unknown one is `missing`. */
export function requireApis(management: Management): Management {
  return {
    read: (query) => management.read(query),
    change: (command, idempotency) =>
      management.change(
        command.kind === "createKey" || command.kind === "importKeys" ? { ...command, apiMustExist: true } : command,
        idempotency,
      ),
  };
}
