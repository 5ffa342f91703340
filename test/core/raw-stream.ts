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
import { toWireCalls } from "../../src/core/remote/unsent-calls.ts";
import type { Question, ReceivedAnswer } from "../../src/core/wire.ts";
import { fromWireSettled } from "../../src/core/wire-charges.ts";

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
  const answered = Promise.withResolvers<ReceivedAnswer>();
  stream.on("data", (message: LinkResponse) => {
    const answers = answersOf(message);
    if (answers[0] !== undefined) answered.resolve(answers[0].answer);
    const isHeartbeat = answers.length + message.recalls.length + message.changes.length === 0;
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
      return messages.flatMap(answersOf);
    },
    /** Makes calls as an edge does. */
    ask(...calls: { id: number; question: Question }[]): void {
      this.send(toWireCalls(calls));
    },
    send(request: MessageInitShape<typeof LinkRequestSchema>): void {
      stream.write(Buffer.from(toBinary(LinkRequestSchema, create(LinkRequestSchema, request))));
    },
    sendBytes: (bytes: Buffer) => void stream.write(bytes),
    end: () => void stream.end(),
    cancel: () => stream.cancel(),
  };
}

function answersOf({ answers, settled }: LinkResponse): { id: number; answer: ReceivedAnswer }[] {
  const charged = fromWireSettled(settled).map((call) => ({
    id: call.id,
    answer: { case: "charge" as const, value: call.settled },
  }));
  return [...answers, ...charged];
}

/** A call for permits. */
export function askingFor(
  id: number,
  value: MessageInitShape<typeof PermitAskSchema>,
): MessageInitShape<typeof CallSchema> {
  return { id, question: { case: "permits", value } };
}
