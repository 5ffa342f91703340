import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { EncodedMessage, Encoding } from "../../domain/forwarded-call.ts";
import { validated } from "../validate.ts";
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

/** Reads a message and checks the rules of its proto file. Throws `InvalidRequest`. */
export function readMessage<Desc extends DescMessage>(
  desc: Desc,
  { encoding, bytes }: EncodedMessage,
): MessageShape<Desc> {
  return validated(desc, decoders[encoding](desc, bytes));
}
