import type { JsonObject } from "@bufbuild/protobuf";
import type { JsonObject as Meta } from "../domain/fields.ts";
import { isDeeperThan, metaBytesMax, metaDepthMax } from "../domain/meta.ts";
import { InvalidRequest } from "./invalid-request.ts";

/** Every verification returns the metadata, so it must be small. Proto rules cannot express these two bounds. */
export function checkMeta(meta: JsonObject): Meta {
  if (isDeeperThan(metaDepthMax, meta as Meta)) throw tooMuch(`must be nested at most ${metaDepthMax} deep`);
  if (Buffer.byteLength(JSON.stringify(meta)) > metaBytesMax) {
    throw tooMuch(`must be at most ${metaBytesMax} bytes as JSON`);
  }
  return meta;
}

function tooMuch(message: string): InvalidRequest {
  return new InvalidRequest([{ path: "meta", message }]);
}
