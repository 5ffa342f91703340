import { type DescField, type DescMessage, fromBinary, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { DEPTH_MAX, InvalidRequest, invalid, joinPath, TOO_DEEP, Violations } from "../invalid-request.ts";
import { memoized } from "../memoized.ts";
import { resolveAliases } from "./aliases.ts";
import { sizesOf, tooLong, tooManyItems } from "./field-sizes.ts";
import { MEMBERS_MAX, TOO_MANY_MEMBERS } from "./parse-json.ts";
import { completeFromBinary } from "./update-fields.ts";

/**
 * Decodes protobuf bytes into a message, or throws a `InvalidRequest` that lists what is wrong with them.
 *
 * Holds binary requests to the rules of JSON ones: no unknown fields, nothing twice, no NUL, only finite numbers.
 * The bytes are inspected before `fromBinary` sees them, because it accepts fields of the wrong wire type and lengths
 * that reach beyond their message, and needs seconds to merge a Struct that 64 KiB repeat thousands of times.
 */
export function decodeBinary<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array): MessageShape<Desc> {
  const message = readBinary(desc, bytes);
  // Before the mask drops what it does not name.
  resolveAliases(desc, message);
  completeFromBinary(desc, message);
  return message;
}

function readBinary<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array): MessageShape<Desc> {
  const violations = new Violations();
  try {
    new Inspector(bytes, violations).inspectMessage(desc, bytes.length, "", 1);
    violations.throwIfAny();
    return fromBinary(desc, bytes);
  } catch (error) {
    if (error instanceof InvalidRequest) throw error;
    // Malformed bytes, invalid UTF-8 included, surface as plain errors. They are dropped: one may repeat input.
    throw invalid("", "is not a valid protobuf message");
  }
}

const VALUE = "google.protobuf.Value";
/** The messages that carry free JSON: names inside are the caller's data, so the path ends at the Struct field. */
const FREE_JSON = new Set(["google.protobuf.Struct", "google.protobuf.ListValue", VALUE]);

/** How the wire format numbers the two fields of a map entry. */
const MAP_KEY = 1;
const MAP_VALUE = 2;
/** A map's values are no lists. */
const NO_LISTS = new Map<DescField, number>();

/**
 * Walks the wire format once, descending into messages; `DEPTH_MAX` bounds the recursion. Well-formed bytes that break
 * a rule add a violation, malformed ones throw.
 */
class Inspector {
  readonly #reader: BinaryReader;
  readonly #violations: Violations;

  constructor(bytes: Uint8Array, violations: Violations) {
    this.#reader = new BinaryReader(bytes);
    this.#violations = violations;
  }

  /** `depth` counts as JSON does, where a Value is no level of its own. */
  inspectMessage(desc: DescMessage, end: number, path: string, depth: number): void {
    if (depth > DEPTH_MAX) throw invalid(path, TOO_DEEP);
    const isFreeJson = FREE_JSON.has(desc.typeName);
    const fields = fieldsOf(desc);
    const seen = new Set<unknown>();
    const items = new Map<DescField, number>();
    while (this.#reader.pos < end) {
      const [number, wireType] = this.#reader.tag();
      const field = fields.get(number);
      if (field === undefined) {
        this.#skip(wireType, path, `has unknown field number ${number}`);
        continue;
      }
      const fieldPath = isFreeJson ? path : joinPath(path, field.jsonName);
      if (field.fieldKind === "map") {
        // The only maps in requests are those of Structs, which have no other field.
        this.#checkFirst(seen, this.#inspectMapEntry(field, wireType, fieldPath, depth), fieldPath);
        if (seen.size > MEMBERS_MAX) throw invalid(fieldPath, TOO_MANY_MEMBERS);
      } else {
        // Members of a oneof exclude each other, as if they were one field.
        if (field.fieldKind !== "list") this.#checkFirst(seen, field.oneof ?? field, path);
        this.#inspectField(field, wireType, fieldPath, depth, items);
      }
    }
    this.#checkEnd(end);
    // `fromBinary` would read it as null, which is a valid value.
    if (desc.typeName === VALUE && seen.size === 0) this.#violations.add(path, "has a value of no kind");
  }

  /** Returns the key, which is always a string. */
  #inspectMapEntry(field: DescField, wireType: WireType, path: string, depth: number): string {
    if (wireType !== WireType.LengthDelimited) {
      this.#skip(wireType, path, "has the wrong wire type");
      return "";
    }
    let key: string | undefined;
    let hasValue = false;
    const end = this.#readEnd();
    while (this.#reader.pos < end) {
      const [number, entryWireType] = this.#reader.tag();
      const isAgain = (number === MAP_KEY && key !== undefined) || (number === MAP_VALUE && hasValue);
      if (isAgain) this.#violations.add(path, "has the same field twice");
      if (number === MAP_KEY && entryWireType === WireType.LengthDelimited) {
        key = this.#inspectText(path);
      } else if (number === MAP_VALUE) {
        hasValue = true;
        this.#inspectField(field, entryWireType, path, depth, NO_LISTS);
      } else {
        this.#skip(entryWireType, path, `has unknown field number ${number}`);
      }
    }
    this.#checkEnd(end);
    if (!hasValue) this.#violations.add(path, "has a field without a value");
    if (key === "__proto__") this.#violations.add(path, "has a field with a reserved name");
    return key ?? "";
  }

  /** `items` counts the elements of the lists of one message. */
  #inspectField(
    field: DescField,
    wireType: WireType,
    path: string,
    depth: number,
    items: Map<DescField, number>,
  ): void {
    const expected = wireTypeOf(field);
    if (wireType === expected) {
      const valuePath = field.fieldKind === "list" ? this.#countItem(field, path, items) : path;
      this.#inspectValue(field, wireType, valuePath, depth);
    } else if (field.fieldKind === "list" && wireType === WireType.LengthDelimited) {
      const end = this.#readEnd();
      while (this.#reader.pos < end) this.#inspectValue(field, expected, this.#countItem(field, path, items), depth);
      if (this.#reader.pos > end) throw new RangeError("a packed element reaches beyond its list");
    } else {
      this.#skip(wireType, path, "has the wrong wire type");
    }
  }

  #inspectValue(field: DescField, wireType: WireType, path: string, depth: number): void {
    if (field.message !== undefined) {
      const nested = field.message.typeName === VALUE ? depth : depth + 1;
      this.inspectMessage(field.message, this.#readEnd(), path, nested);
    } else if (field.scalar === ScalarType.STRING) {
      const { length } = this.#inspectText(path);
      const sizes = sizesOf(field);
      // A character takes four bytes at most. A text that is only somewhat too long is found when the rules are checked.
      if (length > 4 * sizes.charactersMax) this.#violations.add(path, tooLong(sizes));
    } else if (field.scalar === ScalarType.DOUBLE) {
      if (!Number.isFinite(this.#reader.double())) this.#violations.add(path, "must be a finite number");
    } else {
      this.#reader.skip(wireType);
    }
  }

  /** Returns the text with one character per byte. That is enough to compare; `fromBinary` checks that it is UTF-8. */
  #inspectText(path: string): string {
    const text = Buffer.from(this.#reader.bytes()).toString("latin1");
    if (text.includes("\0")) this.#violations.add(path, "must not contain the NUL character");
    // `fromBinary` would drop it silently, and the bytes after it would not have been checked.
    if (text.startsWith("\xef\xbb\xbf")) this.#violations.add(path, "must not start with a byte order mark");
    return text;
  }

  #checkEnd(end: number): void {
    if (this.#reader.pos > end) throw new RangeError("a field reaches beyond its message");
  }

  /** Reads a length, and returns where the bytes of that length end. */
  #readEnd(): number {
    const length = this.#reader.uint32();
    return this.#reader.pos + length;
  }

  #skip(wireType: WireType, path: string, message: string): void {
    this.#violations.add(path, message);
    this.#reader.skip(wireType);
  }

  /**
   * Returns the path of the element; in free JSON that of the list. Ends the inspection at the first element too many: those
   * behind it would be as many as the body has room for.
   */
  #countItem(field: DescField, path: string, items: Map<DescField, number>): string {
    const index = items.get(field) ?? 0;
    items.set(field, index + 1);
    const sizes = sizesOf(field);
    if (index >= sizes.itemsMax) {
      this.#violations.add(path, tooManyItems(sizes));
      this.#violations.throwIfAny();
    }
    return FREE_JSON.has(field.parent.typeName) ? path : `${path}[${index}]`;
  }

  #checkFirst(seen: Set<unknown>, item: unknown, path: string): void {
    if (seen.has(item)) this.#violations.add(path, "has the same field twice");
    seen.add(item);
  }
}

const fieldsOf = memoized(
  (desc: DescMessage): ReadonlyMap<number, DescField> => new Map(desc.fields.map((field) => [field.number, field])),
);

/** The generator accepts no other scalars in requests than texts, doubles, booleans and numbers of 32 bits. */
function wireTypeOf({ message, scalar }: DescField): WireType {
  if (message !== undefined || scalar === ScalarType.STRING) return WireType.LengthDelimited;
  return scalar === ScalarType.DOUBLE ? WireType.Bit64 : WireType.Varint;
}
