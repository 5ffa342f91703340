// What the options of the contract say of fields and messages.
import { type DescField, type DescMessage, type FileRegistry, getOption, hasOption } from "@bufbuild/protobuf";
import type { Change, Options } from "./read-field.ts";

export const PACKAGE = "latchkey.v1";
const CHANGES = new Map<string, Change>([
  ["CHANGE_SET", "set"],
  ["CHANGE_SET_OR_REMOVE", "set or remove"],
]);

/** `reached` are the names of all messages that are printed. */
export function optionsIn(registry: FileRegistry, reached: ReadonlySet<string>): Options {
  const optionOf = (desc: DescField | DescMessage, name: string): unknown => {
    const extension = registry.getExtension(`${PACKAGE}.${name}`) as Parameters<typeof getOption>[1] | undefined;
    return extension && hasOption(desc as never, extension) ? getOption(desc as never, extension) : undefined;
  };
  const changes = registry.getExtension(`${PACKAGE}.change`)?.enum?.values ?? [];
  return {
    change(field) {
      const value = optionOf(field, "change");
      return CHANGES.get(changes.find((each) => each.number === value)?.name ?? "");
    },
    defaultBool: (field) => optionOf(field, "default_bool") as boolean | undefined,
    itemsBy: (field) => optionOf(field, "items_by") as string | undefined,
    format: (field) => optionOf(field, "format") as string | undefined,
    absentMeansAll: (field) => optionOf(field, "absent_means_all") === true,
    aliasOf(field) {
      const name = optionOf(field, "alias_of") as string | undefined;
      if (name === undefined) return undefined;
      const target = field.parent?.fields.find((each) => each.name === name);
      if (target === undefined) throw new Error(`${field}: is another name of ${name}, which does not exist`);
      return target.jsonName;
    },
    readAs: (message) => ((optionOf(message, "read_as") ?? []) as string[]).filter((name) => reached.has(name)),
  };
}
