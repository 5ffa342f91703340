import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { LinkRequestSchema, type LinkResponse, LinkResponseSchema } from "../../../gen/latchkey/core/v2/core_pb.js";
import type { Ambient } from "../../ambient/ambient.ts";
import { Troubles } from "../../ambient/troubles.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { EndOfTurn } from "../../link/end-of-turn.ts";
import { GrpcStream, unixScheme } from "../../link/grpc-stream.ts";
import { PendingCalls } from "../../link/pending-calls.ts";
import type { OnRecall } from "../../ratelimit/permit-channel.ts";
import type { Change } from "../../store/changes.ts";
import { NotExecuted, type Question, type ReceivedAnswer } from "../wire.ts";
import { fromWireSettled } from "../wire-charges.ts";
import { fromWireChange } from "../wire-feed.ts";
import { bytesOf } from "../wire-size.ts";
import { AnswerPieces } from "./answer-pieces.ts";
import { Heartbeat } from "./heartbeat.ts";
import { type LinkCredentials, linkStreamOptions } from "./link-credentials.ts";
import { toWireCalls, type Unsent, type UnsentCall } from "./unsent-calls.ts";

export interface CoordinatorLinkOptions extends Pick<Ambient, "clock" | "log"> {
  /** `host:port`, `https://host:port` for TLS, or `unix:path` for the main process of this worker. */
  readonly address: string;
  /** Called for each connection. Absent: none are needed. */
  readonly credentials?: (() => LinkCredentials) | undefined;
  readonly onRecall: OnRecall;
  /** Called with changes that were just made. When it returns, no cache of this process serves what they changed. */
  readonly onAnnounced?: ((changes: readonly Change[]) => void) | undefined;
  /** Called when it is known whether the coordinator can be used: each time that it reports its status, or fails. */
  readonly onStatusKnown?: () => void;
}

export interface CallOptions {
  /** Called at most once, when the coordinator is in doubt before it has answered. */
  readonly onOverdue?: () => void;
  /** A call that waits to be sent is dropped if this answers false by then. */
  readonly isWanted?: () => boolean;
}

/** An attempt ends after this, and the next one begins immediately: the kernel's own attempts are further and further apart. */
const connectMs = 2000;
/** The pause after a refusal, which costs nothing and means that nothing listens there. It grows. */
const retryMinMs = 50;
const retryMaxMs = 250;
const heartbeatCheckMs = 50;
/** A link that is silent for this long is given up. */
const giveUpMs = 2000;
/** How long a link that is closed waits for the coordinator to end the stream. */
const closeMs = 1000;
const unansweredMax = 50_000;

/** A message is not larger than this, as far as calls can be divided. A coordinator takes eight times as much. */
const messageBytesMax = 1024 * 1024;

/**
 * An edge's stream to one coordinator. It reconnects by itself when it breaks. Calls made in one turn of the
 * event loop share one message. An answer may take as long as the link lives: to give up on it sooner would strand the
 * permits in it. But when the coordinator is silent, has no ledger or stops, new calls should go elsewhere; calls
 * under way are marked overdue. When the link breaks, calls without an answer fail and are not sent again. Calls that were
 * never written to the socket are rejected with `NotExecuted` instead. A link that is given up is reset: see `GrpcStream`.
 */
export class CoordinatorLink {
  readonly #options: CoordinatorLinkOptions;
  readonly #calls = new PendingCalls(unansweredMax, "too much waits for the coordinator");
  readonly #endOfTurn = new EndOfTurn(() => this.#flush());
  readonly #heartbeat = new Heartbeat();
  readonly #timer: NodeJS.Timeout;
  readonly #troubles: Troubles;
  #stream: GrpcStream | undefined;
  /** The end of the attempt, while the stream is not up. */
  #attempt: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isUp = false;
  #isSilent = false;
  #isLedgerAway = false;
  #isStopping = false;
  #isStatusKnown = false;
  #isClosed = false;
  #refusals = 0;
  #timeouts = 0;
  /** The coordinator's time in its last message. */
  #seenTimeMs = 0;
  #unsent: Unsent | undefined;
  readonly #pieces = new AnswerPieces();
  #pathMs = 0;

  constructor(options: CoordinatorLinkOptions) {
    this.#options = options;
    this.#troubles = new Troubles(options.log);
    this.#timer = setInterval(() => this.#checkHeartbeat(), heartbeatCheckMs).unref();
    this.#connect();
  }

  /** Whether the coordinator can be reached: it has answered on the open stream, is not silent and does not stop. */
  get isUp(): boolean {
    return this.#isUp && !this.#isSilent && !this.#isStopping;
  }

  /** Whether it can also be asked for what needs a ledger. */
  get hasLedger(): boolean {
    return this.isUp && !this.#isLedgerAway;
  }

  /** Whether it is known by now if the coordinator can be used. */
  get isStatusKnown(): boolean {
    return this.#isStatusKnown;
  }

  /** The round trip to the coordinator and on to its ledger; 0 until it was measured. */
  get pathMs(): number {
    return this.#pathMs;
  }

  /** Rejects with `NotExecuted` if the call was not sent and never will be, and with `Unavailable` if its outcome is unknown. */
  call(question: Question, { onOverdue, isWanted }: CallOptions = {}): Promise<ReceivedAnswer> {
    if (!this.isUp) return Promise.reject(notSent());
    return this.#calls.open((id) => this.#message().calls.push({ id, question, isWanted }), onOverdue);
  }

  /** Calls made so far are still sent. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#retry);
    clearTimeout(this.#attempt);
    const stream = this.#stream;
    if (this.#isUp) this.#flush();
    stream?.end();
    setTimeout(() => stream?.reset(), closeMs).unref();
    this.#disconnect();
  }

  /** The message of this turn. Its age counts from its first call. */
  #message(): Unsent {
    this.#endOfTurn.schedule();
    const seenTimeMs = this.#seenTimeMs;
    this.#unsent ??= { calls: [], seenTimeMs, seenAgeMs: this.#heartbeat.silentMs(this.#nowMs()) };
    return this.#unsent;
  }

  #flush(): void {
    const { calls, ...seen } = this.#unsent ?? { calls: [] };
    // Not while earlier messages still wait in this process: what was not written to the socket can go elsewhere.
    while (calls.length > 0 && this.#stream !== undefined && !this.#stream.isFull) {
      let bytes = 0;
      let count = 0;
      while (count < calls.length && (count === 0 || bytes < messageBytesMax)) {
        bytes += bytesOf(calls[count++]?.question);
      }
      const sent = calls.splice(0, count).filter((call) => this.#isStillWanted(call));
      this.#write({ ...toWireCalls(sent), ...seen });
    }
    if (calls.length === 0) this.#unsent = undefined;
  }

  #isStillWanted({ id, isWanted }: UnsentCall): boolean {
    if (isWanted?.() ?? true) return true;
    this.#calls.reject(id, notSent());
    return false;
  }

  #connect(): void {
    const { address, credentials } = this.#options;
    const stream: GrpcStream = new GrpcStream({
      ...linkStreamOptions(address, credentials?.() ?? {}),
      firstAddress: this.#timeouts,
      onMessage: (bytes) => this.#onMessage(bytes),
      onDrain: () => this.#flush(),
      onClose: (reason) => this.#onClose(reason),
    });
    this.#stream = stream;
    this.#attempt = setTimeout(() => {
      this.#timeouts++;
      this.#giveUp("no answer in time");
    }, connectMs).unref();
  }

  #onMessage(bytes: Buffer): void {
    if (this.#isClosed) return;
    let response: LinkResponse;
    try {
      response = fromBinary(LinkResponseSchema, bytes);
    } catch {
      this.#giveUp("a message that cannot be read");
      return;
    }
    this.#heartbeat.onMessage(this.#nowMs());
    this.#seenTimeMs = response.timeMs;
    this.#isSilent = false;
    if (!this.#isUp) this.#onConnected();
    this.#pathMs = response.pathMs;
    if (response.changes.length > 0) this.#onChanges(response);
    for (const { id, answer } of response.answers) {
      const whole = this.#pieces.add(id, answer);
      if (whole !== undefined) this.#calls.resolve(id, whole);
    }
    for (const { id, settled } of fromWireSettled(response.settled)) {
      this.#calls.resolve(id, { case: "charge", value: settled });
    }
    for (const subject of response.recalls) this.#options.onRecall(subject);
    this.#onStatus(response);
  }

  #onConnected(): void {
    clearTimeout(this.#attempt);
    this.#isUp = true;
    this.#refusals = 0;
    this.#troubles.end(`the ${this.#peer} is back`, { address: this.#options.address });
    // It only measures the round trip: without it the first call would be the quickest at any age.
    this.#write({ seenTimeMs: this.#seenTimeMs, seenAgeMs: 0 });
  }

  /** Before the answers of the same message are taken: they may be older than the changes. */
  #onChanges({ changes, changesNumber: changesSeen }: LinkResponse): void {
    this.#options.onAnnounced?.(changes.flatMap(fromWireChange));
    this.#write({ seenTimeMs: this.#seenTimeMs, seenAgeMs: 0, changesSeen });
  }

  #write(message: MessageInitShape<typeof LinkRequestSchema>): void {
    this.#stream?.write(toBinary(LinkRequestSchema, create(LinkRequestSchema, message)));
  }

  /** Whether the coordinator has its ledger, and whether it stops. */
  #onStatus({ ledgerAway, stopping }: LinkResponse): void {
    const hasNewTrouble = (ledgerAway && !this.#isLedgerAway) || (stopping && !this.#isStopping);
    this.#isLedgerAway = ledgerAway;
    this.#isStopping = stopping;
    // Not before the path is known: deadlines follow it.
    if (this.#pathMs > 0 || !this.hasLedger) this.#markStatusKnown();
    if (hasNewTrouble) this.#rejectUnsent();
    // A coordinator that stops still answers its calls as quickly as before.
    if (hasNewTrouble && ledgerAway) this.#calls.markOverdue();
    if (stopping && this.#calls.size === 0) this.#stream?.end();
  }

  /** A busy event loop of our own must not look like a silent coordinator: what has arrived is read before it is judged. */
  #checkHeartbeat(): void {
    // The main process of a worker is away only when it has ended, and then the stream ends. There is no other to ask.
    if (this.#isMainProcess) return;
    if (!this.#isUp || !this.#heartbeat.isSilent(this.#nowMs())) return;
    setImmediate(() => {
      if (!this.#isUp || !this.#heartbeat.isSilent(this.#nowMs())) return;
      if (this.#heartbeat.silentMs(this.#nowMs()) > giveUpMs) this.#giveUp("silent");
      else if (!this.#isSilent) {
        this.#isSilent = true;
        this.#rejectUnsent();
        this.#calls.markOverdue();
      }
    });
  }

  /** Calls that were never written to the socket may go to another coordinator. */
  #rejectUnsent(): void {
    const { calls } = this.#unsent ?? { calls: [] };
    this.#unsent = undefined;
    for (const { id } of calls) this.#calls.reject(id, notSent());
  }

  #giveUp(reason: string): void {
    this.#stream?.reset();
    this.#onDisconnected(reason);
    if (!this.#isClosed) this.#connect();
  }

  #onClose(reason: string): void {
    if (this.#isClosed) return;
    this.#onDisconnected(this.#isStopping ? "it stops" : reason);
    const pauseMs = Math.min(retryMaxMs, retryMinMs * 2 ** this.#refusals++);
    this.#retry = setTimeout(() => this.#connect(), pauseMs).unref();
  }

  #onDisconnected(reason: string): void {
    const { address } = this.#options;
    clearTimeout(this.#attempt);
    const fields = { address, reason, ...(reason === "UNIMPLEMENTED" && { advice }) };
    this.#troubles.begin(`the ${this.#peer} is away`, fields);
    this.#disconnect();
    this.#markStatusKnown();
  }

  #markStatusKnown(): void {
    this.#isStatusKnown = true;
    this.#options.onStatusKnown?.();
  }

  #disconnect(): void {
    this.#stream = undefined;
    this.#isUp = false;
    this.#isSilent = false;
    this.#isLedgerAway = false;
    this.#isStopping = false;
    this.#heartbeat.reset();
    this.#pieces.clear();
    this.#rejectUnsent();
    this.#calls.rejectAll(new Unavailable("the coordinator is away"));
  }

  get #isMainProcess(): boolean {
    return this.#options.address.startsWith(unixScheme);
  }

  get #peer(): string {
    return this.#isMainProcess ? "main process" : "coordinator";
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

const advice = "it does not know the internal protocol of this version: update edges and coordinators together";

function notSent(): NotExecuted {
  return new NotExecuted("the call was not sent");
}
