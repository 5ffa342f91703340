// A client that does nothing wrong, in a process of its own, so that nothing but the server and the machine delays it. Run by
// fork; is told what to ask, asks at a steady pace, and reports whenever it is asked to.

import http from "node:http";
import http2 from "node:http2";

export interface HonestOrder {
  readonly port: number;
  /** Of one of Node's own servers that is not attacked. */
  readonly controlPort: number;
  readonly plainKey: string;
  /** Used by no other client, so that each answer shows one use fewer than the one before. */
  readonly countedKey: string;
}

/** What was seen since the report before. */
export interface HonestReport {
  /** How long each answer took. */
  readonly tookMs: readonly number[];
  /** The same for a server that is not attacked, at the same time: the effect of the machine alone. */
  readonly controlTookMs: readonly number[];
  /** Answers that were not right, and connections that were lost. */
  readonly wrong: readonly string[];
}

/** Longer than an answer takes under an attack that is withstood: else requests wait for each other, and add that up. */
const everyMs = 20;

interface Sample {
  readonly lane: Lane;
  readonly startMs: number;
  readonly tookMs: number;
}
const samples: Sample[] = [];
const wrong: string[] = [];

class Lane {
  /** When the request that is under way was due. */
  dueMs = performance.now();

  /** Asks at a steady pace. A request that is held up by the one before counts from the moment it was due. */
  async run(asks: readonly (() => Promise<void>)[]): Promise<never> {
    for (let turn = 0; ; turn++) {
      this.dueMs += everyMs;
      const waitMs = this.dueMs - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      const startMs = waitMs > 0 ? performance.now() : this.dueMs;
      await asks[turn % asks.length]?.().catch((error: Error) => wrong.push(error.message));
      samples.push({ lane: this, startMs, tookMs: performance.now() - startMs });
    }
  }
}

const controlLane = new Lane();
const lanes = [new Lane(), new Lane(), controlLane] as const;

function start({ port, controlPort, plainKey, countedKey }: HonestOrder): void {
  const overHttp1 = createHttp1Client(port);
  const overHttp2 = createHttp2Client(port);
  const unknownKey = `${plainKey.slice(0, -1)}~`;
  let remaining: number | undefined;
  const expectPlain = (text: string) => expect(text, /^\{"keyId":"[^"]+","valid":true,.*"ownerId":"honest"/);
  const expectUnknown = (text: string) => expect(text, /^\{"valid":false,"code":"NOT_FOUND"/);
  const expectCounted = (text: string) => {
    const told = Number(/^\{"keyId":"[^"]+","valid":true,.*"remaining":(\d+)/.exec(text)?.[1]);
    if (remaining !== undefined && told !== remaining - 1) throw new Error(`after ${remaining} left came: ${text}`);
    remaining = told;
  };
  void lanes[0].run([
    async () => expectPlain(await overHttp1(plainKey)),
    async () => expectCounted(await overHttp1(countedKey)),
    async () => expectUnknown(await overHttp1(unknownKey)),
  ]);
  const overControl = createHttp1Client(controlPort);
  void controlLane.run([async () => void (await overControl(plainKey))]);
  void lanes[1].run([
    async () => expectPlain(await overHttp2(plainKey)),
    async () => expectUnknown(await overHttp2(unknownKey)),
  ]);
}

function expect(text: string, pattern: RegExp): void {
  if (!pattern.test(text)) throw new Error(`a wrong answer: ${text.slice(0, 300)}`);
}

type Ask = (key: string) => Promise<string>;

function createHttp1Client(port: number): Ask {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  let asked = 0;
  return (key) =>
    new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const req = http.request({ agent, host: "127.0.0.1", port, method: "POST", path: "/v1/keys.verifyKey", headers });
      req.on("response", (res) => {
        if (asked++ > 0 && !req.reusedSocket) wrong.push("an honest connection of HTTP/1.1 was closed");
        collect(res, (text) =>
          res.statusCode === 200 ? resolve(text) : reject(new Error(`${res.statusCode}: ${text}`)),
        );
      });
      req.on("error", (error) => reject(new Error(`over HTTP/1.1: ${error.message}`)));
      req.end(JSON.stringify({ key }));
    });
}

function createHttp2Client(port: number): Ask {
  let session: http2.ClientHttp2Session | undefined;
  const connect = () => {
    if (session !== undefined) wrong.push("an honest connection of HTTP/2 was closed");
    session = http2.connect(`http://127.0.0.1:${port}`).on("error", () => {});
    return session;
  };
  return (key) =>
    new Promise((resolve, reject) => {
      const open = session === undefined || session.closed || session.destroyed ? connect() : session;
      const headers = { ":method": "POST", ":path": "/v1/keys.verifyKey", "content-type": "application/json" };
      const stream = open.request(headers);
      collect(stream, resolve);
      stream.on("error", (error) => reject(new Error(`over HTTP/2: ${error.message}`)));
      stream.on("close", () => reject(new Error("a stream was closed without an answer")));
      stream.end(JSON.stringify({ key }));
    });
}

function collect(stream: NodeJS.ReadableStream, done: (text: string) => void): void {
  let text = "";
  stream.on("data", (chunk) => {
    text += chunk;
  });
  stream.on("end", () => done(text));
}

/** The arena may be gone by the time of an answer. */
const ignore = () => {};

/** Waits for the requests that are late: they belong to the time in which they were due. */
async function report(): Promise<void> {
  const untilMs = performance.now();
  while (lanes.some(({ dueMs }) => dueMs <= untilMs)) await new Promise((resolve) => setTimeout(resolve, 2));
  const due = samples.filter(({ startMs }) => startMs <= untilMs);
  samples.splice(0, samples.length, ...samples.filter(({ startMs }) => startMs > untilMs));
  const honest = due.filter(({ lane }) => lane !== controlLane);
  const answer: HonestReport = {
    tookMs: honest.map(({ tookMs }) => tookMs),
    controlTookMs: due.filter(({ lane }) => lane === controlLane).map(({ tookMs }) => tookMs),
    wrong: [...new Set(wrong.splice(0, wrong.length))].slice(0, 5),
  };
  process.send?.(answer, ignore);
}

/** Waits until nothing is late any more, and forgets what was measured until then. */
async function settle(): Promise<void> {
  while (lanes.some(({ dueMs }) => dueMs <= performance.now())) await new Promise((resolve) => setTimeout(resolve, 2));
  samples.splice(0, samples.length);
  process.send?.("settled", ignore);
}

process.on("message", (order: HonestOrder | "report" | "settle") => {
  if (order === "report") void report();
  else if (order === "settle") void settle();
  else start(order);
});
process.on("disconnect", () => process.exit());
