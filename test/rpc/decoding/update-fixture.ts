import { create, type Message, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { decodeBinary } from "../../../src/rpc/decoding/decode-binary.ts";
import { decodeJson } from "../../../src/rpc/decoding/decode-json.ts";
import { changesOf } from "../../../src/rpc/decoding/update-fields.ts";
import { validated } from "../../../src/rpc/validate.ts";
import { compileWidgets } from "../../support/widgets.ts";

export const update = compileWidgets().messageOf("UpdateWidgetRequest");

export type Init = Record<string, unknown>;

export function readJson(json: object): Message {
  return validated(update, decodeJson(update, Buffer.from(JSON.stringify(json))));
}

/** What a binary message with these fields is read as. Without paths it has no mask. */
export function readBinary(init: Init, paths?: readonly string[]): Message {
  const sent = create(update, { ...init, ...(paths && { updateMask: { paths } }) } as MessageInitShape<typeof update>);
  return validated(update, decodeBinary(update, toBinary(update, sent)));
}

export function changes(message: Message): object {
  // The types of updates are generated for the methods of the service, which this is not.
  return changesOf(update, message as never);
}
