import {
  clearField,
  type DescField,
  type DescMessage,
  getOption,
  isFieldSet,
  type JsonObject,
  type Message,
} from "@bufbuild/protobuf";
import { alias_of } from "../../../gen/latchkey/v1/options_pb.js";
import { joinPath, Violations } from "../invalid-request.ts";
import { memoized } from "../memoized.ts";
import { maskIn, updateFieldsOf } from "./update-fields.ts";

/* Fields that have a second name: see the option `alias_of`. */

interface Aliases {
  readonly pairs: readonly { readonly alias: DescField; readonly target: DescField }[];
  /** Fields with messages that have aliases, themselves or further inside. */
  readonly inside: readonly DescField[];
}

const aliasesOf: (desc: DescMessage) => Aliases = memoized((desc) => {
  const pairs = desc.fields.flatMap((alias) => {
    const target = desc.fields.find(({ name }) => name === getOption(alias, alias_of));
    return target === undefined ? [] : [{ alias, target }];
  });
  const inside = desc.fields.filter(({ message }) => {
    // Others have none, and may contain themselves.
    if (message?.file.proto.package !== desc.file.proto.package) return false;
    const { pairs, inside } = aliasesOf(message);
    return pairs.length + inside.length > 0;
  });
  return { pairs, inside };
});

/** JSON shows what the caller sent, so null and an empty text also differ from a value. */
export function refuseDifferentNames(
  desc: DescMessage,
  object: JsonObject,
  path: string,
  violations: Violations,
): void {
  for (const { alias, target } of aliasesOf(desc).pairs) {
    const isBoth = [alias, target].every(({ jsonName }) => Object.hasOwn(object, jsonName));
    if (isBoth && object[alias.jsonName] !== object[target.jsonName])
      violations.add(joinPath(path, alias.jsonName), mustBeSame(target));
  }
}

function mustBeSame({ jsonName }: DescField): string {
  return `must be the same as ${jsonName}, of which it is another name`;
}

/**
 * Moves what a message says under another name of a field into the field, also in the mask of an update. Answers the paths that
 * callers have used in place of others. Throws `InvalidRequest`.
 */
export function resolveAliases(
  desc: DescMessage,
  message: Message,
  within = "",
  violations = new Violations(),
): ReadonlyMap<string, string> {
  const used = new Map<string, string>();
  const values = message as unknown as Record<string, unknown>;
  const { pairs, inside } = aliasesOf(desc);
  const update = updateFieldsOf(desc);
  for (const { alias, target } of pairs) {
    const paths = (update && maskIn(update, message)?.paths) ?? [];
    const [isSet, isTargetSet] = [isFieldSet(message, alias), isFieldSet(message, target)];
    const [isNamed, isTargetNamed] = [paths.includes(alias.name), paths.includes(target.name)];
    if (!isSet && !isNamed) continue;
    const path = joinPath(within, alias.jsonName);
    const differ = isSet && isTargetSet && values[alias.localName] !== values[target.localName];
    // One of them would be removed, and the other set.
    const isBoth = isNamed && isTargetNamed && isSet !== isTargetSet;
    if (differ || isBoth) violations.add(path, mustBeSame(target));
    used.set(joinPath(within, target.jsonName), path);
    if (isSet) values[target.localName] = values[alias.localName];
    clearField(message, alias);
    const renamed = paths.map((name) => (name === alias.name ? target.name : name));
    paths.splice(0, paths.length, ...new Set(renamed));
  }
  for (const field of inside) {
    const value = (values[field.localName] ?? []) as Message | Message[];
    for (const [index, each] of [value].flat().entries()) {
      const path = joinPath(within, Array.isArray(value) ? `${field.jsonName}[${index}]` : field.jsonName);
      for (const one of resolveAliases(field.message as DescMessage, each, path, violations)) used.set(...one);
    }
  }
  if (within === "") violations.throwIfAny();
  return used;
}
