import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { LinkRequestSchema, type LinkResponse, LinkResponseSchema } from "../../../gen/latchkey/core/v2/core_pb.js";
import type { Ambient } from "../../ambient/ambient.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { EndOfTurn } from "../../link/end-of-turn.ts";
import { GrpcStream } from "../../link/grpc-stream.ts";
import { PendingCalls } from "../../link/pending-calls.ts";
import type { OnRecall } from "../../ratelimit/permit-channel.ts";
import { NotExecuted, type Question, type ReceivedAnswer } from "../wire.ts";
import { AnswerPieces } from "./answer-pieces.ts";
import { Heartbeat } from "./heartbeat.ts";
import { type LinkCredentials, linkStreamOptions } from "./link-credentials.ts";

export interface CoordinatorLinkOptions extends Pick<Ambient, "clock" | "log"> {
  /** `host:port`, or `https://host:port` for TLS. */
  readonly address: string;
  /** Asked for each connection. Absent: none are needed. */
  readonly credentials?: (() => LinkCredentials) | undefined;
  readonly onRecall: OnRecall;
  /** Called when it is known whether the coordinator can be asked, each time that it says so or fails. */
  readonly onTried?: () => void;
}

export interface CallOptions {
  /** Called at most once, when the coordinator is in doubt before it has answered. */
  readonly onOverdue?: () => void;
  /** A call that waits to be sent is dropped if this answers false by then. */
  readonly isWanted?: () => boolean;
}

/** An attempt ends after this, and the next one begins at once: the kernel's own attempts are further and further apart. */
const connectMs = 2000;
/** The pause after a refusal, which costs nothing and says that nothing listens there. It grows. */
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
 * An edge's stream to one coordinator. It comes back by itself when it breaks, and what it is told in one turn of the
 * event loop shares one message. An answer may take as long as the link lives: to give up on it sooner would strand the
 * permits in it. But when the coordinator is silent, has no ledger or stops, new calls should go elsewhere; callers of
 * calls under way are told. When the link breaks, calls without an answer fail and are not sent again. Calls that were
 * never written to the socket are handed back instead. A link that is given up is reset: see `GrpcStream`.
 */
export class CoordinatorLink {
  readonly #options: CoordinatorLinkOptions;
  readonly #calls = new PendingCalls(unansweredMax, "too much waits for the coordinator");
  readonly #endOfTurn = new EndOfTurn(() => this.#flush());
  readonly #heartbeat = new Heartbeat();
  readonly #timer: NodeJS.Timeout;
  #stream: GrpcStream | undefined;
  /** The end of the attempt, while the stream is not up. */
  #attempt: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isUp = false;
  #isSilent = false;
  #isLedgerAway = false;
  #isStopping = false;
  #isTroubled = false;
  #isTried = false;
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

  /** Whether it is known by now if the coordinator can be asked. */
  get isTried(): boolean {
    return this.#isTried;
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

  /** What was said so far is still sent. */
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
    const seen = () => ({ seenTimeMs: this.#seenTimeMs, seenAgeMs: this.#heartbeat.silentMs(this.#nowMs()) });
    this.#unsent ??= { calls: [], ...seen() };
    return this.#unsent;
  }

  #flush(): void {
    const { calls, ...seen } = this.#unsent ?? { calls: [] };
    // Not while earlier messages still wait in this process: what was not written to the socket can go elsewhere.
    while (calls.length > 0 && this.#stream !== undefined && !this.#stream.isFull) {
      let bytes = 0;
      let count = 0;
      while (count < calls.length && (count === 0 || bytes < messageBytesMax)) {
        bytes += bytesOf(calls[count++] as UnsentCall);
      }
      const sent = calls.splice(0, count).filter((call) => this.#isStillWanted(call));
      const message = create(LinkRequestSchema, { calls: sent.map(({ id, question }) => ({ id, question })), ...seen });
      this.#stream.write(toBinary(LinkRequestSchema, message));
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
    this.#heartbeat.heard(this.#nowMs());
    this.#seenTimeMs = response.timeMs;
    this.#isSilent = false;
    if (!this.#isUp) this.#arrive();
    this.#pathMs = response.pathMs;
    for (const { id, answer } of response.answers) {
      const whole = this.#pieces.add(id, answer);
      if (whole !== undefined) this.#calls.resolve(id, whole);
    }
    for (const subject of response.recalls) this.#options.onRecall(subject);
    this.#follow(response);
  }

  #arrive(): void {
    const { address, log } = this.#options;
    clearTimeout(this.#attempt);
    this.#isUp = true;
    this.#refusals = 0;
    if (this.#isTroubled) log.info("the coordinator is back", { address });
    this.#isTroubled = false;
    // Says nothing but how long a round trip takes: without it the first call would be the quickest at any age.
    const first = { seenTimeMs: this.#seenTimeMs, seenAgeMs: 0 };
    this.#stream?.write(toBinary(LinkRequestSchema, create(LinkRequestSchema, first)));
  }

  /** What the coordinator says of itself. */
  #follow({ ledgerAway, stopping }: LinkResponse): void {
    const isNews = (ledgerAway && !this.#isLedgerAway) || (stopping && !this.#isStopping);
    this.#isLedgerAway = ledgerAway;
    this.#isStopping = stopping;
    // Not before the path is known: deadlines follow it.
    if (this.#pathMs > 0 || !this.hasLedger) this.#tried();
    if (isNews) this.#handBack();
    // A coordinator that stops answers what it was asked as soon as ever.
    if (isNews && ledgerAway) this.#calls.markOverdue();
    if (stopping && this.#calls.size === 0) this.#stream?.end();
  }

  /** A busy event loop of our own must not look like a silent coordinator: what has arrived is read before it is judged. */
  #checkHeartbeat(): void {
    if (!this.#isUp || !this.#heartbeat.isSilent(this.#nowMs())) return;
    setImmediate(() => {
      if (!this.#isUp || !this.#heartbeat.isSilent(this.#nowMs())) return;
      if (this.#heartbeat.silentMs(this.#nowMs()) > giveUpMs) this.#giveUp("silent");
      else if (!this.#isSilent) {
        this.#isSilent = true;
        this.#handBack();
        this.#calls.markOverdue();
      }
    });
  }

  /** What was never written to the socket may go elsewhere. */
  #handBack(): void {
    const { calls } = this.#unsent ?? { calls: [] };
    this.#unsent = undefined;
    for (const { id } of calls) this.#calls.reject(id, notSent());
  }

  #giveUp(reason: string): void {
    this.#stream?.reset();
    this.#lose(reason);
    if (!this.#isClosed) this.#connect();
  }

  #onClose(reason: string): void {
    if (this.#isClosed) return;
    this.#lose(this.#isStopping ? "it stops" : reason);
    const pauseMs = Math.min(retryMaxMs, retryMinMs * 2 ** this.#refusals++);
    this.#retry = setTimeout(() => this.#connect(), pauseMs).unref();
  }

  #lose(reason: string): void {
    const { address, log } = this.#options;
    clearTimeout(this.#attempt);
    if (!this.#isTroubled)
      log.warn("the coordinator is away", { address, reason, ...(reason === "UNIMPLEMENTED" && { advice }) });
    this.#isTroubled = true;
    this.#disconnect();
    this.#tried();
  }

  #tried(): void {
    this.#isTried = true;
    this.#options.onTried?.();
  }

  #disconnect(): void {
    this.#stream = undefined;
    this.#isUp = false;
    this.#isSilent = false;
    this.#isLedgerAway = false;
    this.#isStopping = false;
    this.#heartbeat.reset();
    this.#pieces.clear();
    this.#handBack();
    this.#calls.rejectAll(away());
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

const advice = "it does not know the internal protocol of this version: update edges and coordinators together";

function away(): Unavailable {
  return new Unavailable("the coordinator is away");
}

function notSent(): NotExecuted {
  return new NotExecuted("the call was not sent");
}

interface Unsent {
  readonly calls: UnsentCall[];
  readonly seenTimeMs: number;
  readonly seenAgeMs: number;
}

interface UnsentCall {
  readonly id: number;
  readonly question: Question;
  readonly isWanted: CallOptions["isWanted"];
}

/** About. Only management calls, root keys and reports can be large. */
function bytesOf({ question }: UnsentCall): number {
  switch (question.case) {
    case "windows":
      return 150 * (question.value?.reports?.length ?? 0);
    case "management": {
      const { rootKey = "", body = [], idempotencyKey = "" } = question.value ?? {};
      return 400 + body.length + 3 * (rootKey.length + idempotencyKey.length);
    }
    case "rootKey":
      return 200 + 3 * (question.value?.rootKey?.length ?? 0);
    default:
      return 200;
  }
}
