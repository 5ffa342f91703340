import { UsageError } from "./command-error.ts";
import { type Flag, flagName } from "./flags.ts";

export type JsonMessage = Record<string, unknown>;

export function isJsonObject(value: unknown): value is JsonMessage {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Sets fields of a request one after the other, in the order of the flags. The first flag of a list replaces what the
 * request had there before; the next ones add to it.
 */
export function createFieldSetter(request: JsonMessage): (flag: Flag, value: unknown) => void {
  /** The lists that flags fill, and by which kind of flag: whole elements, or their fields. */
  const filled = new Map<string, "elements" | "fields">();
  return ({ name, path, field, list }, value) => {
    const [key, parent] = place(list === undefined ? request : elementFor(name, list), path.slice(list?.path.length));
    if (!field.isList) {
      if (list !== undefined && key in parent) throw new UsageError(`--${name} was given twice for one element`);
      parent[key] = value;
      return;
    }
    const values = Array.isArray(value) ? value : [value];
    const isBegun = list === undefined ? fill(name, "elements") : key in parent;
    parent[key] = isBegun ? [...(parent[key] as unknown[]), ...values] : values;
  };

  /** The element that the flag belongs to: a new one if it is the flag that begins one. */
  function elementFor(name: string, { path, begin }: NonNullable<Flag["list"]>): JsonMessage {
    const [key, parent] = place(request, path);
    const listName = flagName(path);
    if (name !== begin) {
      if (!filled.has(listName)) throw new UsageError(`--${begin} begins an element: give it before --${name}`);
    } else {
      const elements = fill(listName, "fields") ? (parent[key] as JsonMessage[]) : [];
      parent[key] = [...elements, {}];
    }
    return (parent[key] as JsonMessage[]).at(-1) as JsonMessage;
  }

  /** Whether flags have begun to fill the list before. */
  function fill(listName: string, how: "elements" | "fields"): boolean {
    const before = filled.get(listName);
    if (before !== undefined && before !== how)
      throw new UsageError(`--${listName} and flags of its fields cannot be given together`);
    filled.set(listName, how);
    return before !== undefined;
  }
}

/** The name of the last field of the path, and the object that holds it, which is made if it is not there. */
function place(root: JsonMessage, path: readonly string[]): [string, JsonMessage] {
  let parent = root;
  for (const name of path.slice(0, -1)) {
    const inner = parent[name];
    if (isJsonObject(inner)) parent = inner;
    else {
      const made: JsonMessage = {};
      parent[name] = made;
      parent = made;
    }
  }
  return [path.at(-1) as string, parent];
}
