import { clearField, type DescField, type DescMessage, getOption, isFieldSet, type Message } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { alias_of } from "../../../gen/latchkey/v1/options_pb.js";
import { joinPath, type Violations } from "../invalid-request.ts";
import { updateFieldsOf } from "./update-fields.ts";

/* Fields that have a second name: see the option `alias_of`. */

interface Aliases {
  readonly pairs: readonly { readonly alias: DescField; readonly target: DescField }[];
  /** Fields with messages that have aliases, themselves or further inside. */
  readonly inside: readonly DescField[];
}

const none: Aliases = { pairs: [], inside: [] };
const known = new WeakMap<DescMessage, Aliases>();

function aliasesOf(desc: DescMessage): Aliases {
  const found = known.get(desc);
  if (found !== undefined) return found;
  // Known before it is read to the end: a message may contain itself.
  known.set(desc, none);
  const pairs = desc.fields.flatMap((alias) => {
    const target = desc.fields.find(({ name }) => name === getOption(alias, alias_of));
    return target === undefined ? [] : [{ alias, target }];
  });
  const inside = desc.fields.filter(({ message }) => {
    const { pairs, inside } = message === undefined ? none : aliasesOf(message);
    return pairs.length + inside.length > 0;
  });
  known.set(desc, { pairs, inside });
  return { pairs, inside };
}

/**
 * Moves what a message says under another name of a field into the field, also in the mask of an update. Answers the paths that
 * callers have used in place of others.
 */
export function resolveAliases(
  desc: DescMessage,
  message: Message,
  violations: Violations,
  within = "",
): ReadonlyMap<string, string> {
  const used = new Map<string, string>();
  const values = message as unknown as Record<string, unknown>;
  const { pairs, inside } = aliasesOf(desc);
  for (const { alias, target } of pairs) {
    const paths = maskOf(desc, values)?.paths ?? [];
    const isIn = (field: DescField) => isFieldSet(message, field) || paths.includes(field.name);
    if (!isIn(alias)) continue;
    const path = joinPath(within, alias.jsonName);
    if (isIn(target) && values[alias.localName] !== values[target.localName])
      violations.add(path, `must be the same as ${target.jsonName}, of which it is another name`);
    used.set(joinPath(within, target.jsonName), path);
    if (isFieldSet(message, alias)) values[target.localName] = values[alias.localName];
    clearField(message, alias);
    const renamed = paths.map((name) => (name === alias.name ? target.name : name));
    paths.splice(0, paths.length, ...new Set(renamed));
  }
  for (const field of inside) {
    const value = values[field.localName];
    const messages = Array.isArray(value) ? value : value === undefined ? [] : [value];
    for (const [index, each] of messages.entries()) {
      const path = joinPath(within, Array.isArray(value) ? `${field.jsonName}[${index}]` : field.jsonName);
      for (const one of resolveAliases(field.message as DescMessage, each, violations, path)) used.set(...one);
    }
  }
  return used;
}

function maskOf(desc: DescMessage, values: Record<string, unknown>): FieldMask | undefined {
  const update = updateFieldsOf(desc);
  return update && (values[update.mask.localName] as FieldMask | undefined);
}
