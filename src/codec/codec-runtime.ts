import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";

/* What generated codecs are made of is in this folder. `gen` imports it, so it imports nothing of ours. */

/**
 * A method with generated codecs. They read only messages that they understand completely and that obey the rules of
 * the proto file. For all others they return undefined, and the strict decoder reads them or says what is wrong. They
 * print the same bytes as the reference.
 */
export interface HotMethod {
  /** The method's path on the gateway. */
  readonly path: string;
  readonly method: DescMethodUnary;
  /** Reads the JSON between `start` and `end`. */
  decodeJson(bytes: Buffer, start: number, end: number): MessageShape<DescMessage> | undefined;
  /** Reads the protobuf message that begins at `start` and ends with the bytes. */
  decodeBinary(bytes: Buffer, start: number): MessageShape<DescMessage> | undefined;
  encodeJson(message: MessageInitShape<DescMessage>): string;
  /** A gRPC frame: five bytes in front of the message. */
  encodeFrame(message: MessageInitShape<DescMessage>): Buffer;
}

/** Every list that a request leaves out. One for all: a request without lists does not pay for them. */
export const noItems: readonly never[] = Object.freeze([]);
