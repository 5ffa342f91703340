import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import {
  type ExchangeRequest,
  ExchangeRequestSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from "../../../gen/latchkey/ratelimit/v1/ratelimit_pb.js";
import type { Log } from "../../ambient/log.ts";
import type { PermitAsk } from "../../domain/permit-window.ts";
import type { Secret } from "../../domain/secret.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { PermitResult } from "../../store/permit-ledger.ts";
import { fromWireAnswer, fromWireNews, toWireAsk, toWireReports } from "../coordinator/wire.ts";
import type { HubAnswer, KeyedReport } from "../local/window-hub.ts";
import type { OnRecall } from "./permit-channel.ts";

export interface CoordinatorLinkOptions {
  /** `host:port`, or `https://host:port` where the coordinator speaks TLS. */
  readonly address: string;
  readonly secret: Secret | undefined;
  /** CA certificates in PEM, instead of the ones that Node trusts. */
  readonly ca?: string | undefined;
  readonly onRecall: OnRecall;
  readonly log: Log;
}

const method = "/latchkey.ratelimit.v1.RatelimitService/Exchange";
const retryMinMs = 50;
const retryMaxMs = 1000;
/** A link without a sign of life is given up after twice this. */
const keepAliveMs = 1000;
const unansweredMax = 50_000;

/**
 * One replica's stream to one coordinator. It comes back by itself when it breaks, and what it is told in one turn of the
 * event loop shares one message. An answer may take as long as the link lives: to give up on it sooner would strand the
 * permits in it. When the link breaks, asks without an answer fail, and are not sent again.
 */
export class CoordinatorLink {
  readonly #options: CoordinatorLinkOptions;
  readonly #client: grpc.Client;
  #stream: Stream | undefined;
  #isUp = false;
  #isTroubled = false;
  #closed = false;
  #tries = 0;
  #retry: NodeJS.Timeout | undefined;
  #nextId = 0;
  #unsent = emptyRequest();
  readonly #waiting = new Map<number, Waiting>();

  constructor(options: CoordinatorLinkOptions) {
    this.#options = options;
    const isTls = options.address.startsWith("https://");
    const ca = options.ca === undefined ? null : Buffer.from(options.ca);
    this.#client = new grpc.Client(
      options.address.replace(/^https?:\/\//, ""),
      isTls ? grpc.credentials.createSsl(ca) : grpc.credentials.createInsecure(),
      {
        "grpc.keepalive_time_ms": keepAliveMs,
        "grpc.keepalive_timeout_ms": keepAliveMs,
        "grpc.initial_reconnect_backoff_ms": retryMinMs,
        "grpc.max_reconnect_backoff_ms": retryMaxMs,
        // An ask that is sent twice could be settled twice.
        "grpc.enable_retries": 0,
      },
    );
    this.#connect();
  }

  /** Whether the coordinator has answered on the stream that is open. */
  get isUp(): boolean {
    return this.#isUp;
  }

  exchange(keyId: string, ask: PermitAsk): Promise<PermitResult> {
    return this.#send((id) => this.#unsent.asks.push(toWireAsk(id, keyId, ask))) as Promise<PermitResult>;
  }

  report(reports: readonly KeyedReport[]): Promise<HubAnswer> {
    return this.#send((id) => this.#unsent.reports.push(toWireReports(id, reports))) as Promise<HubAnswer>;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#flush();
    this.#stream?.end();
    this.#fail();
    this.#client.close();
  }

  #send(put: (id: number) => void): Promise<unknown> {
    if (!this.#isUp) return Promise.reject(new Unavailable("the coordinator is away"));
    if (this.#waiting.size >= unansweredMax)
      return Promise.reject(new Unavailable("too much waits for the coordinator"));
    this.#nextId = (this.#nextId + 1) >>> 0;
    const id = this.#nextId;
    // After everything that this turn has to say.
    if (this.#unsent.asks.length + this.#unsent.reports.length === 0) setImmediate(() => this.#flush());
    put(id);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #flush(): void {
    const request = this.#unsent;
    if (request.asks.length + request.reports.length === 0) return;
    this.#unsent = emptyRequest();
    this.#stream?.write(create(ExchangeRequestSchema, request));
  }

  #connect(): void {
    const metadata = new grpc.Metadata();
    if (this.#options.secret) metadata.set("authorization", `Bearer ${this.#options.secret.reveal()}`);
    const stream: Stream = this.#client.makeBidiStreamRequest(
      method,
      (request: ExchangeRequest) => Buffer.from(toBinary(ExchangeRequestSchema, request)),
      (bytes: Buffer) => fromBinary(ExchangeResponseSchema, bytes),
      metadata,
    );
    this.#stream = stream;
    stream.on("data", (response: ExchangeResponse) => this.#hear(response));
    // An error is followed by a status, and so is an end.
    stream.on("error", () => {});
    stream.on("status", ({ code }: grpc.StatusObject) => this.#onEnd(stream, grpc.status[code] ?? "unknown"));
  }

  #hear({ answers, news, recalls }: ExchangeResponse): void {
    this.#arrive();
    for (const answer of answers) this.#resolve(answer.id, fromWireAnswer(answer));
    for (const each of news) this.#resolve(each.id, fromWireNews(each));
    for (const keyId of recalls) this.#options.onRecall(keyId);
  }

  #resolve(id: number, result: PermitResult | HubAnswer): void {
    this.#waiting.get(id)?.resolve(result);
    this.#waiting.delete(id);
  }

  #arrive(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.#tries = 0;
    if (this.#isTroubled) this.#options.log.info("the coordinator is back", { address: this.#options.address });
    this.#isTroubled = false;
  }

  #onEnd(stream: Stream, reason: string): void {
    if (stream !== this.#stream || this.#closed) return;
    this.#fail();
    if (!this.#isTroubled)
      this.#options.log.warn("the coordinator is away", { address: this.#options.address, reason });
    this.#isTroubled = true;
    this.#retry = setTimeout(() => this.#connect(), Math.min(retryMaxMs, retryMinMs * 2 ** this.#tries++)).unref();
  }

  #fail(): void {
    this.#isUp = false;
    this.#unsent = emptyRequest();
    for (const { reject } of this.#waiting.values()) reject(new Unavailable("the coordinator is away"));
    this.#waiting.clear();
  }
}

type Stream = grpc.ClientDuplexStream<ExchangeRequest, ExchangeResponse>;

interface Waiting {
  readonly resolve: (result: PermitResult | HubAnswer) => void;
  readonly reject: (error: Unavailable) => void;
}

interface UnsentRequest {
  readonly asks: ReturnType<typeof toWireAsk>[];
  readonly reports: ReturnType<typeof toWireReports>[];
}

function emptyRequest(): UnsentRequest {
  return { asks: [], reports: [] };
}
