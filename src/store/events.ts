import type { Command } from "./commands.ts";

/* What the event of a change says of it. */

/** As the method is called in JSON. */
export const methodOf: Readonly<Record<Command["kind"], string>> = {
  createKey: "keys.createKey",
  updateKey: "keys.updateKey",
  updateRemaining: "keys.updateRemaining",
  rerollKey: "keys.rerollKey",
  deleteKey: "keys.deleteKey",
  importKeys: "keys.importKeys",
  createOwner: "owners.createOwner",
  updateOwner: "owners.updateOwner",
  updateOwnerRemaining: "owners.updateRemaining",
  stopOwner: "owners.deleteOwner",
  deleteOwner: "owners.deleteOwner",
  createRootKey: "rootKeys.createRootKey",
  updateRootKey: "rootKeys.updateRootKey",
  revokeRootKey: "rootKeys.revokeRootKey",
  createApi: "apis.createApi",
  updateApi: "apis.updateApi",
  // The deletion of an API, or of an owner, with its keys is one call.
  stopApi: "apis.deleteApi",
  deleteApiKeys: "apis.deleteApi",
  deleteApi: "apis.deleteApi",
};

/** The names of the fields that it changes, as callers know them; never their values. */
export function fieldsOf(command: Command): readonly string[] {
  switch (command.kind) {
    case "updateKey":
    case "updateRootKey":
    case "updateApi":
    case "updateOwner":
      return Object.entries(command.changes).flatMap(([name, value]) => (value === undefined ? [] : publicName(name)));
    case "updateRemaining":
    case "updateOwnerRemaining":
      return ["remaining"];
    case "rerollKey":
      return ["secrets"];
    default:
      return [];
  }
}

function publicName(field: string): string {
  return names.get(field) ?? field;
}

/** Of fields that have another name in the contract. */
const names = new Map([
  ["expiresAtMs", "expires"],
  ["rateLimit", "ratelimit"],
  ["rateLimits", "ratelimits"],
]);
