import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { EncodedMessage, Encoding } from "../../domain/forwarded-call.ts";
import { InvalidRequest } from "../invalid-request.ts";
import { validated } from "../validate.ts";
import { resolveAliases } from "./aliases.ts";
import { decodeBinary } from "./decode-binary.ts";
import { decodeJson } from "./decode-json.ts";
import { decodeQuery } from "./decode-query.ts";
import { decodeRpcJson } from "./decode-rpc-json.ts";

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
  const used = resolveAliases(desc, message);
  try {
    return validated(desc, message);
  } catch (error) {
    if (!(error instanceof InvalidRequest) || used.size === 0) throw error;
    // Report the name that the caller used.
    throw new InvalidRequest(error.violations.map(({ path, message }) => ({ path: used.get(path) ?? path, message })));
  }
}
