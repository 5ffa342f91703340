import type { Fields } from "../domain/fields.ts";
import { resources } from "../domain/resources.ts";
import { type Command, resourceOf } from "./commands.ts";

/** The names of the fields that it changes, as callers know them, for its event; never their values. */
export function fieldsOf(command: Command): readonly string[] {
  switch (command.kind) {
    case "updateKey":
    case "updateRootKey":
    case "updateApi":
    case "updateOwner": {
      const fields: Fields = resources[resourceOf(command)];
      const changed = Object.entries(command.changes).filter(([, value]) => value !== undefined);
      return changed.map(([name]) => fields[name]?.publicName ?? name);
    }
    case "updateRemaining":
    case "updateOwnerRemaining":
      return ["remaining"];
    case "rerollKey":
      return ["secrets"];
    default:
      return [];
  }
}
