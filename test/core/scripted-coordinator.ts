import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import {
  type LinkRequest,
  LinkRequestSchema,
  type LinkResponse,
  LinkResponseSchema,
} from "../../gen/latchkey/core/v2/core_pb.js";

/** A fake coordinator. It records every message, and sends heartbeats and what the test wants. */
export class ScriptedCoordinator {
  /** Every message with calls that came, on all streams. */
  readonly requests: LinkRequest[] = [];
  /** The first message of every stream, which is empty. */
  readonly greetings: LinkRequest[] = [];
  /** The credentials of every stream that was opened. */
  readonly authorizations: grpc.MetadataValue[][] = [];
  /** Whether a new stream gets the first, empty message. */
  welcomes = true;
  /** Whether streams that were welcomed get heartbeats. */
  beats = true;
  /** What each heartbeat says. */
  state: { ledgerAway?: boolean; stopping?: boolean; pathMs?: number } = {};
  /** Streams that the edge has ended by itself. */
  ends = 0;
  readonly port: number;
  readonly #server: grpc.Server;
  readonly #streams = new Set<Stream>();

  private constructor(server: grpc.Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  static async start(port = 0): Promise<ScriptedCoordinator> {
    const server = new grpc.Server();
    const method: grpc.MethodDefinition<LinkRequest, LinkResponse> = {
      path: "/latchkey.core.v2.CoreService/Link",
      requestStream: true,
      responseStream: true,
      requestSerialize: (message) => Buffer.from(toBinary(LinkRequestSchema, message)),
      requestDeserialize: (bytes) => fromBinary(LinkRequestSchema, bytes),
      responseSerialize: (message) => Buffer.from(toBinary(LinkResponseSchema, message)),
      responseDeserialize: (bytes) => fromBinary(LinkResponseSchema, bytes),
    };
    const bound = await new Promise<number>((resolve, reject) => {
      const join = (stream: Stream) => coordinator.#join(stream);
      server.addService({ link: method }, { link: join });
      server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    const coordinator: ScriptedCoordinator = new ScriptedCoordinator(server, bound);
    const beating = setInterval(() => coordinator.beats && coordinator.welcomes && coordinator.say({}), 50);
    onTestFinished(() => {
      clearInterval(beating);
      server.forceShutdown();
    });
    return coordinator;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get streams(): number {
    return this.#streams.size;
  }

  get calls() {
    return this.requests.flatMap((request) => request.calls);
  }

  /** The calls for permits. */
  get asks() {
    return this.calls.flatMap(({ id, question }) => (question.case === "permits" ? [{ id, ...question.value }] : []));
  }

  say(response: MessageInitShape<typeof LinkResponseSchema>): void {
    const message = { timeMs: performance.now(), ...this.state, ...response };
    for (const stream of this.#streams) stream.write(create(LinkResponseSchema, message));
  }

  /** Ends every stream with an error, as a coordinator that crashes does, and goes on serving new ones. */
  breakStreams(): void {
    const status = { code: grpc.status.INTERNAL, details: "broken on purpose" };
    for (const stream of this.#streams) stream.emit("error", Object.assign(new Error(), status));
    this.#streams.clear();
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  #join(stream: Stream): void {
    this.#streams.add(stream);
    this.authorizations.push(stream.metadata.get("authorization"));
    stream.on("data", (request: LinkRequest) => {
      const isGreeting = request.calls.length === 0 && request.charges === undefined;
      (isGreeting ? this.greetings : this.requests).push(request);
    });
    stream.on("error", () => {});
    stream.on("end", () => {
      this.ends++;
      this.#streams.delete(stream);
      stream.end();
    });
    stream.on("cancelled", () => this.#streams.delete(stream));
    if (this.welcomes) stream.write(create(LinkResponseSchema, { timeMs: performance.now(), ...this.state }));
  }
}

type Stream = grpc.ServerDuplexStream<LinkRequest, LinkResponse>;
