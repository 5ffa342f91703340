import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import type { EncodedMessage, Encoding } from "../../domain/forwarded-call.ts";
import { InvalidRequest, joinPath, Violations } from "../invalid-request.ts";
import { validated } from "../validate.ts";
import { resolveAliases } from "./aliases.ts";
import { decodeBinary } from "./decode-binary.ts";
import { decodeJson, isObject, messageReader, printKnownPath, readJson } from "./decode-json.ts";
import { decodeQuery } from "./decode-query.ts";
import { parseJson } from "./parse-json.ts";
import { type ChangeFields, completeFromBinary, setMask, updateFieldsOf } from "./update-fields.ts";

type Decode = <Desc extends DescMessage>(desc: Desc, bytes: Uint8Array) => MessageShape<Desc>;

const decoders: Readonly<Record<Encoding, Decode>> = {
  json: decodeJson,
  query: (desc, bytes) => decodeQuery(desc, Buffer.from(bytes).toString()),
  rpcJson: decodeRpcJson,
  proto: decodeBinary,
};

/** Reads a message, with all names of its fields, and checks the rules of its proto file. Throws `InvalidRequest`. */
export function readMessage<Desc extends DescMessage>(
  desc: Desc,
  { encoding, bytes }: EncodedMessage,
): MessageShape<Desc> {
  const message = decoders[encoding](desc, bytes);
  // Those of a binary message are resolved: its mask needs them.
  const used = encoding === "proto" ? undefined : resolveAliases(desc, message);
  try {
    return validated(desc, message);
  } catch (error) {
    if (!(error instanceof InvalidRequest) || !used?.size) throw error;
    // Report the name that the caller used.
    throw new InvalidRequest(error.violations.map(({ path, message }) => ({ path: used.get(path) ?? path, message })));
  }
}

/** As `decodeJson`, for a protocol whose clients are generated: their JSON can hold the mask of an update. */
export function decodeRpcJson<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array): MessageShape<Desc> {
  const value = parseJson(bytes, (trail) => printKnownPath(desc, trail));
  return readMaskedJson(desc, value) ?? readJson(desc, value, new Violations());
}

/** Undefined if it is no update with a mask; an empty one is none. */
function readMaskedJson<Desc extends DescMessage>(desc: Desc, value: JsonValue): MessageShape<Desc> | undefined {
  const update = updateFieldsOf(desc);
  if (update === undefined || !isObject(value) || !Object.hasOwn(value, update.mask.jsonName)) return undefined;
  const { [update.mask.jsonName]: mask, ...fields } = value;
  const violations = new Violations();
  if (mask === "") return readJson(desc, fields, violations);
  if (typeof mask !== "string") violations.add(update.mask.jsonName, MASK_IS_TEXT);
  refuseNulls(update.changes, fields, "", violations);
  const message = messageReader(desc)(fields, "", violations) as MessageShape<Desc>;
  violations.throwIfAny();
  // In JSON a mask has the JSON names of fields.
  const names = String(mask).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  setMask(update, message, names.split(","));
  // Before the mask drops what it does not name.
  resolveAliases(desc, message);
  completeFromBinary(desc, message);
  return message;
}

const MASK_IS_TEXT = "must be a text: the names of fields, separated by commas";
const NULL_WITH_MASK = "must not be null where updateMask is given; leave the field out";

/** What the mask names and the message does not have is removed: null would say it a second time. */
function refuseNulls(changes: ChangeFields, object: JsonObject, within: string, violations: Violations): void {
  for (const { field, parts } of changes.values()) {
    const value = object[field.jsonName];
    const path = joinPath(within, field.jsonName);
    if (value === null) violations.add(path, NULL_WITH_MASK);
    else if (parts !== undefined && value !== undefined) {
      for (const [index, one] of [value].flat().entries()) {
        const onePath = Array.isArray(value) ? `${path}[${index}]` : path;
        if (isObject(one)) refuseNulls(parts, one, onePath, violations);
      }
    }
  }
}
