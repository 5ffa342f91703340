import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { JsonObject as Meta } from "../domain/key.ts";
import { InvalidRequest } from "./invalid-request.ts";

const bytesMax = 16_384;
const depthMax = 16;

/** Every verification returns the metadata, so it must be small. Proto rules cannot express these two bounds. */
export function checkMeta(meta: JsonObject): Meta {
  if (depthOf(meta) > depthMax) throw tooMuch(`must be nested at most ${depthMax} deep`);
  if (Buffer.byteLength(JSON.stringify(meta)) > bytesMax) throw tooMuch(`must be at most ${bytesMax} bytes as JSON`);
  return meta;
}

function depthOf(value: JsonValue): number {
  if (value === null || typeof value !== "object") return 0;
  return 1 + Object.values(value).reduce<number>((deepest, inner) => Math.max(deepest, depthOf(inner)), 0);
}

function tooMuch(message: string): InvalidRequest {
  return new InvalidRequest([{ path: "meta", message }]);
}
