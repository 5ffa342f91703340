import { describe, expect, it } from "vitest";
import { SeededRandom } from "../domain/seeded-random.ts";
import { startTwins, type TwinServers } from "../rpc/fast-path/twin-servers.ts";
import { readCorpus } from "./corpus.ts";
import { type Ending, type Heard, quietMs, sendCut } from "./cuts/send-cut.ts";
import { mutateRequest } from "./reader/mutate-request.ts";
import { isLong, partMs, replay, seedFor, timeoutMs } from "./run-options.ts";

/*
 * The same bytes, cut, ended or reset at every offset, for the fast path, for the reference path, and for a server of Node's
 * alone with the reference path's listener. All must answer the same.
 */

const together = 60;
const mutantsInTest = 300;
/** For requests after which every server closes the connection: it ends a hang only. One who leaves earlier is not refused. */
const closedMs = 60_000;

describe("the fast path, the reference path and bare Node answer the same", { timeout: timeoutMs }, () => {
  it.each(["cut", "fin", "late fin"] as const)("to requests with a %s at every offset", async (ending) => {
    const twins = await startTwins();
    for (const bytes of requests(twins.secrets)) {
      const offsets = Array.from({ length: bytes.length + 1 }, (_, at) => ({ bytes, at, ending }));
      expect(await differences(twins, offsets, closedMs)).toEqual([]);
    }
    await expectSameAccounts(twins);
  });

  it.each(["cut", "late fin"] as const)("to every file of the corpus with a %s", async (ending) => {
    const twins = await startTwins();
    const random = new SeededRandom(seedFor("corpus"));
    const sent = readCorpus().flatMap(({ bytes }) =>
      [0, 1, random.integer(2, bytes.length), bytes.length].map((at) => ({ bytes: andClose(bytes), at, ending })),
    );
    expect(await differences(twins, sent)).toEqual([]);
  });

  it(`to changed requests with anything anywhere (${replay})`, async () => {
    const twins = await startTwins();
    const corpus = [...readCorpus().map(({ bytes }) => bytes), ...requests(twins.secrets)];
    const random = new SeededRandom(seedFor("cuts"));
    const untilMs = performance.now() + partMs(0.2, 10);
    for (let sent = 0; performance.now() < untilMs && (isLong || sent < mutantsInTest); sent += together) {
      const mutants = Array.from({ length: together }, () => {
        const bytes = andClose(mutateRequest(random.pick(corpus), corpus, random));
        const ending = random.pick<Ending>(["cut", "cut", "fin", "late fin", "rst"]);
        return { bytes, at: random.integer(0, bytes.length), ending };
      });
      expect(await differences(twins, mutants)).toEqual([]);
    }
  });
});

describe("resets", { timeout: timeoutMs }, () => {
  it("at every offset hurt no other connection, and no failure is counted", async () => {
    const twins = await startTwins();
    for (const bytes of requests(twins.secrets)) {
      const offsets = Array.from({ length: bytes.length + 1 }, (_, at) => ({ bytes, at, ending: "rst" as const }));
      expect(await differences(twins, offsets)).toEqual([]);
    }
    const accounts = await twins.accounts();
    for (const { metrics } of accounts) expect(metrics.filter((line) => /fail.* [1-9]/.test(line))).toEqual([]);
  });
});

interface Sent {
  readonly bytes: Buffer;
  readonly at: number;
  readonly ending: Ending;
}

/** Sends all of them to all three, and tells where they were answered differently; the first few will do. */
async function differences(twins: TwinServers, all: readonly Sent[], silenceMs = quietMs): Promise<string[]> {
  const found: string[] = [];
  for (let start = 0; start < all.length && found.length === 0; start += together) {
    const batch = all.slice(start, start + together);
    const compared = await Promise.all(batch.map((sent) => differenceOf(twins, sent, silenceMs)));
    for (const [index, difference] of compared.entries()) {
      if (difference === undefined) continue;
      // On a busy machine an answer can be late. One that does not come is not there the second time either.
      const again = await differenceOf(twins, batch[index] as Sent, 10 * silenceMs);
      if (again !== undefined && found.push(again) >= 3) return found;
    }
  }
  return found;
}

async function differenceOf(twins: TwinServers, sent: Sent, silenceMs: number): Promise<string | undefined> {
  const ports = { reference: twins.ports[0], fast: twins.ports[1], bare: twins.barePort };
  const asked = Object.entries(ports).map(async ([way, port]) => [way, await sendCut(port, sent, silenceMs)] as const);
  const { bare, ...ours } = Object.fromEntries(await Promise.all(asked));
  const text = sent.bytes.toString("latin1");
  // Node alone answers `/v1/authz` before it has read a body that is there, and then has to end the connection.
  const isAlike = !(text.includes("/v1/authz") && /^(content-length|transfer-encoding):/im.test(text));
  const heard = isAlike && bare !== undefined ? { ...ours, bare } : ours;
  // After a reset the client gets only the answers that were fast enough. And only Node drops bytes behind an upgrade.
  const isComparable = sent.ending !== "rst" && !/upgrade/i.test(text);
  return isComparable ? compare(sent, heard) : undefined;
}

function compare({ bytes, at, ending }: Sent, heard: Readonly<Record<string, Heard>>): string | undefined {
  const refusalCounts = ending === "cut";
  const comparable = (each: Heard) => (refusalCounts ? each : unrefused(each));
  const compared = Object.entries(heard).map(([way, each]) => ({ way, ...comparable(each) }));
  const [first] = compared;
  for (const each of compared) {
    if (each.way !== "bare" || each.answers === first?.answers) continue;
    const answers = withoutEarlyError((heard.bare as Heard).answers);
    Object.assign(each, comparable({ ...each, answers }));
  }
  if (compared.every(({ answers, closedBy }) => answers === first?.answers && closedBy === first?.closedBy))
    return undefined;
  const sent = JSON.stringify(bytes.toString("latin1", 0, 1500));
  const ways = compared.map(({ way, answers, closedBy }) => `  ${way}, closed by ${closedBy}: ${inShort(answers)}`);
  return `${ending} at ${at} of ${sent}:\n${ways.join("\n")}`;
}

/** Each answer's status and what its body says. */
function inShort(answers: string): string {
  const all = answers.split(/HTTP\/1\.1 (?=\d)/).slice(1);
  return (
    all.map((answer) => `${answer.slice(0, 3)} ${answer.split("\r\n\r\n")[1]?.slice(0, 90)}`).join(" | ") || "nothing"
  );
}

/**
 * Node refuses a request that its client breaks off by FIN. The port does not: it closes a connection whose client has
 * closed its side. The client would not read that refusal.
 */
function unrefused({ answers, closedBy }: Heard): Heard {
  const refusal = /HTTP\/1\.1 400 [^{]*\{"error":\{[^{}]*not a well-formed HTTP request[^{}]*\}\}$/;
  return { answers: answers.replace(refusal, ""), closedBy };
}

/**
 * Node alone can answer a request before it has read on and found the rest of it malformed; the port finds that first, as
 * both came in one read.
 */
function withoutEarlyError(answers: string): string {
  const error =
    /HTTP\/1\.1 4\d\d [^{]*\{"error":\{(?:[^{}]|\{[^{}]*\})*\}\}(?=HTTP\/1\.1 400 [^{]*\{"error":\{[^{}]*not a well-formed[^{}]*\}\}$)/;
  return answers.replace(error, "");
}

async function expectSameAccounts(twins: TwinServers): Promise<void> {
  const [reference, fast] = await twins.accounts();
  expect(fast.metrics).toEqual(reference.metrics);
  expect(fast.log).toEqual(reference.log);
}

/** After this request every server closes the connection, so that the client does not wait for more answers. */
const close = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

function andClose(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.from(close)]);
}

function requests(secrets: Readonly<Record<string, string>>): Buffer[] {
  const verify = (kind: string) => {
    const body = JSON.stringify({ key: secrets[kind] });
    const head = ["POST /v1/keys.verifyKey HTTP/1.1", "Host: a", "Content-Type: application/json"];
    return `${[...head, `Content-Length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
  };
  const chunked = verify("plain")
    .replace(/Content-Length: \d+/, "Transfer-Encoding: chunked")
    .replace(
      /(\{.*\})/,
      (body) => `5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\n\r\n`,
    );
  return [verify("plain") + verify("counted") + close, verify("unknown") + chunked + verify("plain") + close].map(
    (text) => Buffer.from(text),
  );
}
