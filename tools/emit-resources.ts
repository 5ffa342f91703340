import type { Field, Fields, Kind } from "../src/domain/fields.ts";
import { keyFields, ownerFields } from "../src/domain/resources.ts";
import { columnNamesOf } from "../src/store/sql/field-columns.ts";

/*
 * Emits what verifications need of keys and owners, from the description of their fields: how rows are read, what is cached
 * and what crosses the link. All other code goes through the description at run time; here that would show in every look-up.
 */

const keys = verified(keyFields);
const owners = verified(ownerFields);

interface Named {
  readonly name: string;
  readonly field: Field;
}

function verified(fields: Fields): readonly Named[] {
  const [wrong] = Object.entries(fields).find(([, each]) => each.verified === "rare" && "byDefault" in each) ?? [];
  if (wrong !== undefined) throw new Error(`${wrong} always has a value, so that it is not rare`);
  return Object.entries(fields).flatMap(([name, field]) => (field.verified === undefined ? [] : [{ name, field }]));
}

/** The texts of the files, by their paths below `gen/`. Each is in the folder of the room that it belongs to. */
export function emitResources(): ReadonlyMap<string, string> {
  return new Map([
    ["resources/store/found-rows.ts", foundRows()],
    ["resources/store/cached-key.ts", cachedKey()],
    ["resources/core/wire.ts", wire()],
  ]);
}

const head = "// Generated from src/domain/resources.ts. Do not edit.\n";

function foundRows(): string {
  const counter = ["counters.remaining", "counters.refill_interval"];
  return `${head}import type { Key } from "../../../src/domain/key.ts";
import { limitsOfKey, limitsOfOwner } from "../../../src/domain/limits.ts";
import type { Owner } from "../../../src/domain/owner.ts";
import { read, readBalance, readRanges } from "../../../src/store/sql/read-columns.ts";

${rowType("Key", "keys", ["id", "api_id"], counter, keys, ["has_owner_record", "secret_expires_at_ms"])}
/** Throws \`Unavailable\`, for this key only, if the row cannot be read. */
export function toKey(row: KeyRow): Key {
  const id = row[0];
${limitsConst(keys, 4)}  return {
    id,
    apiId: row[1],
    counter: readBalance(row[2], row[3]),
${readFields(keys, 4)}    hasOwnerRecord: row[${4 + widthOf(keys)}] === 1,
    secretExpiresAtMs: row[${5 + widthOf(keys)}] ?? undefined,
  };
}

${rowType("Owner", "owners", ["id"], counter, owners, [])}
/** Throws \`Unavailable\`, for this owner only, if the row cannot be read. */
export function toOwner(row: OwnerRow): Owner {
  const id = row[0];
${limitsConst(owners, 3)}  return {
    id,
    counter: readBalance(row[1], row[2]),
${readFields(owners, 3)}  };
}
`;
}

/** The columns of a row that is looked up, in its order, and which of them are numbers. */
function rowType(
  what: string,
  table: string,
  own: readonly string[],
  counter: readonly string[],
  fields: readonly Named[],
  last: readonly string[],
): string {
  const ofFields = fields.flatMap(({ field }) => columnNamesOf(field).map((column) => ({ column, field })));
  const columns = [
    ...own.map((column) => `${table}.${column}`),
    ...counter,
    ...ofFields.map(({ column }) => `${table}.${column}`),
  ];
  const types = [
    ...own.map(() => "string"),
    "number | null",
    "string | null",
    ...ofFields.map(({ field }) => typeOf(field)),
    ...last.map(() => "number | null"),
  ];
  const numbers = types.flatMap((type, at) => (type.startsWith("number") ? [at] : []));
  const name = what.toLowerCase();
  const also = last.length === 0 ? "" : `; then come ${last.map((column) => `\`${column}\``).join(" and ")}`;
  return `/** What is looked up of ${name === "owner" ? "an" : "a"} ${name}, in the order of its row${also}. */
export const ${name}Columns = [
${columns.map((column) => `  "${column}",\n`).join("")}] as const;

export type ${what}Row = readonly [
${types.map((type) => `  ${type},\n`).join("")}];

/** Where the row has numbers. */
export const ${name}Numbers: readonly number[] = [${numbers.join(", ")}];
`;
}

function typeOf({ kind, byDefault }: Field): string {
  const isNumber = ["whole", "moment", "flag", "rateLimit"].includes(kind);
  return `${isNumber ? "number" : "string"}${byDefault === undefined ? " | null" : ""}`;
}

function widthOf(fields: readonly Named[]): number {
  return fields.reduce((sum, { field }) => sum + columnNamesOf(field).length, 0);
}

/** Limits are read before the rest: they may be absent, and get their subjects only if not. */
function limitsConst(fields: readonly Named[], from: number): string {
  return placesOf(fields, from)
    .filter(({ field }) => field.kind === "rateLimits")
    .map(({ name, at }) => `  const ${name} = read.rateLimits(row[${at}]);\n`)
    .join("");
}

function readFields(fields: readonly Named[], from: number): string {
  const limitsOf = fields === keys ? "limitsOfKey" : "limitsOfOwner";
  return placesOf(fields, from)
    .map(({ name, field, at }) => {
      switch (field.kind) {
        case "rateLimits":
          return `    ${name}: ${name} && ${limitsOf}(id, ${name}),\n`;
        case "addresses":
          return `    ${name}: readRanges(row[${at}]),\n`;
        case "rateLimit":
          return `    ${name}: read.rateLimit(row[${at}], row[${at + 1}], row[${at + 2}]),\n`;
        case "whole":
          return `    ${name}: read.whole(row[${at}], ${field.max}),\n`;
        default:
          return `    ${name}: read.${field.kind}(row[${at}]),\n`;
      }
    })
    .join("");
}

function placesOf(fields: readonly Named[], from: number): readonly (Named & { readonly at: number })[] {
  let at = from;
  return fields.map((each) => {
    const place = { ...each, at };
    at += columnNamesOf(each.field).length;
    return place;
  });
}

/** One copy is kept of a value that many keys share. */
const interned: { readonly [Name in Kind]?: string } = {
  json: "sharedMeta",
  rateLimit: "interner.rule",
  rateLimits: "interner.limits",
  texts: "interner.texts",
  addresses: "interner.numbers",
};

function cachedKey(): string {
  const [common, rare] = ["common", "rare"].map((share) => keys.filter(({ field }) => field.verified === share));
  const kept = ({ name, field }: Named) => {
    const keep = field.isShared ? "interner.text" : interned[field.kind];
    if (keep === undefined) return `    this.${name} = key.${name};\n`;
    const isAlways = field.byDefault !== undefined;
    return `    this.${name} = ${isAlways ? "" : `key.${name} && `}${keep}(key.${name});\n`;
  };
  const declared = (named: readonly Named[] = [], prefix: string) =>
    named.map(({ name }) => `  ${prefix}readonly ${name}: Key["${name}"];\n`).join("");
  const isFull = (rare ?? []).map(({ name }) => `key.${name} !== undefined`).join(" ||\n    ");
  return `${head}import type { Key } from "../../../src/domain/key.ts";
import { type Interner, sharedMeta } from "../../../src/store/interner.ts";

/** A cached key. There can be millions of them, so that values which many share are kept once. */
export class CachedKey implements Key {
  readonly id: string;
  readonly apiId: string;
  readonly hasOwnerRecord: boolean;
  readonly counter: Key["counter"];
${declared(common, "")}  /* Few keys have one of these: then they are fields of \`FullCachedKey\`, and the others take no room for them. */
${declared(rare, "declare ")}  declare readonly secretExpiresAtMs: number | undefined;

  constructor(key: Key, interner: Interner) {
    this.id = key.id;
    this.apiId = interner.text(key.apiId);
    this.hasOwnerRecord = key.hasOwnerRecord;
    this.counter = key.counter;
${common?.map(kept).join("")}  }
}

/** A key with something that few have, or one that was found by a secret with an end. */
class FullCachedKey extends CachedKey {
${declared(rare, "override ")}  override readonly secretExpiresAtMs: number | undefined;

  constructor(key: Key, interner: Interner) {
    super(key, interner);
${rare?.map(kept).join("")}    this.secretExpiresAtMs = key.secretExpiresAtMs;
  }
}

export function toCachedKey(key: Key, interner: Interner): CachedKey {
  return isFull(key) ? new FullCachedKey(key, interner) : new CachedKey(key, interner);
}

function isFull(key: Key): boolean {
  return (
    ${isFull} ||
    key.secretExpiresAtMs !== undefined
  );
}
`;
}

/** The functions of \`wire-fields.ts\` for values that have another form on the link. */
const wireForms: { readonly [Name in Kind]?: readonly [to: string, from: string] } = {
  json: ["toWireJson", "fromWireJson"],
  rateLimit: ["toWireRateLimit", "fromWireRateLimit"],
  rateLimits: ["toWireLimits", "fromWireLimits"],
  texts: ["toWireList", "fromWireList"],
  addresses: ["toWireList", "fromWireList"],
};

function wire(): string {
  const wireName = ({ name, field }: Named) => (field.kind === "json" ? `${name}Json` : name);
  const to = (each: Named) => {
    const form = wireForms[each.field.kind]?.[0];
    const isOptional = each.field.kind === "rateLimit";
    const value = `value.${each.name}`;
    const sent = form === undefined ? value : isOptional ? `${value} && ${form}(${value})` : `${form}(${value})`;
    return `    ${wireName(each)}: ${sent},\n`;
  };
  const from = (limitsOf: string) => (each: Named) => {
    const form = wireForms[each.field.kind]?.[1];
    const value = `wire.${wireName(each)}`;
    const isOptional = each.field.kind === "rateLimit";
    if (each.field.kind === "rateLimits") return `    ${each.name}: ${form}(${value}, wire.id, ${limitsOf}),\n`;
    const read = form === undefined ? value : isOptional ? `${value} && ${form}(${value})` : `${form}(${value})`;
    return `    ${each.name}: ${read},\n`;
  };
  const functions = [...new Set(Object.values(wireForms).flat())].sort();
  return `${head}import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  fromWireBalance,
${functions.map((name) => `  ${name},\n`).join("")}} from "../../../src/core/wire-fields.ts";
import type { Key } from "../../../src/domain/key.ts";
import { limitsOfKey, limitsOfOwner } from "../../../src/domain/limits.ts";
import type { Owner } from "../../../src/domain/owner.ts";
import type { KeySchema, OwnerSchema, Key as WireKey, Owner as WireOwner } from "../../latchkey/core/v2/core_pb.js";

/* Keys and owners as look-ups answer them over the internal streams. What a coordinator has sent is believed. */

export function toWireKey(value: Key): MessageInitShape<typeof KeySchema> {
  return {
    id: value.id,
    apiId: value.apiId,
${keys.map(to).join("")}    remaining: value.counter?.remaining,
    refillInterval: value.counter?.refillInterval,
    hasOwnerRecord: value.hasOwnerRecord,
    secretExpiresAtMs: value.secretExpiresAtMs,
  };
}

/** Throws a \`SyntaxError\` for metadata that is not JSON. */
export function fromWireKey(wire: WireKey): Key {
  return {
    id: wire.id,
    apiId: wire.apiId,
${keys.map(from("limitsOfKey")).join("")}    counter: fromWireBalance(wire),
    hasOwnerRecord: wire.hasOwnerRecord,
    secretExpiresAtMs: wire.secretExpiresAtMs,
  };
}

export function toWireOwner(value: Owner): MessageInitShape<typeof OwnerSchema> {
  return {
    id: value.id,
${owners.map(to).join("")}    remaining: value.counter?.remaining,
    refillInterval: value.counter?.refillInterval,
  };
}

export function fromWireOwner(wire: WireOwner): Owner {
  return {
    id: wire.id,
${owners.map(from("limitsOfOwner")).join("")}    counter: fromWireBalance(wire),
  };
}
`;
}
