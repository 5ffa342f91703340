import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import {
  ExchangeRequestSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from "../../../gen/latchkey/ratelimit/v1/ratelimit_pb.js";

/** A client of the internal service without our link: raw bytes, answers as they come. */
export function openRawStream(address: string, authorization?: string) {
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  onTestFinished(() => client.close());
  const metadata = new grpc.Metadata();
  if (authorization !== undefined) metadata.set("authorization", authorization);
  const stream = client.makeBidiStreamRequest(
    "/latchkey.ratelimit.v1.RatelimitService/Exchange",
    (bytes: Buffer) => bytes,
    (bytes: Buffer) => fromBinary(ExchangeResponseSchema, bytes),
    metadata,
  );
  const messages: ExchangeResponse[] = [];
  const heartbeats: ExchangeResponse[] = [];
  stream.on("data", (message: ExchangeResponse) => {
    const isHeartbeat = message.answers.length + message.news.length + message.recalls.length === 0;
    (isHeartbeat && messages.length > 0 ? heartbeats : messages).push(message);
  });
  stream.on("error", () => {});
  const ended = new Promise<grpc.StatusObject>((resolve) => stream.on("status", resolve));
  return {
    /** The first one, and all that say more than that the coordinator is there. */
    messages,
    heartbeats,
    /** The status with which it ends. */
    ended,
    send(request: MessageInitShape<typeof ExchangeRequestSchema>): void {
      stream.write(Buffer.from(toBinary(ExchangeRequestSchema, create(ExchangeRequestSchema, request))));
    },
    sendBytes: (bytes: Buffer) => void stream.write(bytes),
    end: () => void stream.end(),
    cancel: () => stream.cancel(),
  };
}
