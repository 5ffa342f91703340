import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import {
  type CallSchema,
  LinkRequestSchema,
  type LinkResponse,
  LinkResponseSchema,
  type PermitAskSchema,
} from "../../gen/latchkey/core/v2/core_pb.js";

/** A client of the internal service without our link: raw bytes, answers as they come. */
export function openRawStream(address: string, authorization?: string) {
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  onTestFinished(() => client.close());
  const metadata = new grpc.Metadata();
  if (authorization !== undefined) metadata.set("authorization", authorization);
  const stream = client.makeBidiStreamRequest(
    "/latchkey.core.v2.CoreService/Link",
    (bytes: Buffer) => bytes,
    (bytes: Buffer) => fromBinary(LinkResponseSchema, bytes),
    metadata,
  );
  const messages: LinkResponse[] = [];
  const heartbeats: LinkResponse[] = [];
  const answered = Promise.withResolvers<LinkResponse["answers"][number]["answer"]>();
  stream.on("data", (message: LinkResponse) => {
    if (message.answers[0] !== undefined) answered.resolve(message.answers[0].answer);
    const isHeartbeat = message.answers.length + message.recalls.length + message.changes.length === 0;
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
    /** The first answer. */
    answered: answered.promise,
    get answers() {
      return messages.flatMap(({ answers }) => answers);
    },
    send(request: MessageInitShape<typeof LinkRequestSchema>): void {
      stream.write(Buffer.from(toBinary(LinkRequestSchema, create(LinkRequestSchema, request))));
    },
    sendBytes: (bytes: Buffer) => void stream.write(bytes),
    end: () => void stream.end(),
    cancel: () => stream.cancel(),
  };
}

/** A call for permits. */
export function askingFor(
  id: number,
  value: MessageInitShape<typeof PermitAskSchema>,
): MessageInitShape<typeof CallSchema> {
  return { id, question: { case: "permits", value } };
}
