import { bodyOf, LlhttpConnection } from "./llhttp.ts";
import type { ReaderAnswer, ReadRequest } from "./our-reader.ts";

export interface Comparison {
  /** How the two disagree; undefined when they do not. */
  readonly finding: string | undefined;
  /** Requests that the reader took. */
  readonly takenCount: number;
  readonly lastStatus: ReaderAnswer["status"];
}

/**
 * Gives the same bytes to a reader and to llhttp. What the reader takes, llhttp must take as well, with the same first and
 * last byte and the same body, on a connection that stays open where the reader thinks so. What the reader waits for, llhttp
 * must wait for as well.
 */
export function compareReaders(bytes: Buffer, read: ReadRequest): Comparison {
  let answer = read(bytes, 0);
  let takenCount = 0;
  // Bytes that the reader does not take need no comparison. Most inputs end here, and llhttp is slower.
  if (answer.status === "unsupported") return { finding: undefined, takenCount, lastStatus: answer.status };
  let llhttp = new LlhttpConnection();
  try {
    let at = 0;
    /** Requests on earlier connections of llhttp. */
    let before = 0;
    let finding: string | undefined;
    while (answer.status === "taken" && finding === undefined) {
      finding = compareTaken(bytes.subarray(at), answer, at, takenCount - before, llhttp);
      takenCount++;
      at = answer.end;
      if (at >= bytes.length || answer.isLast) break;
      // Node drops what follows the wish for an upgrade, which the service passes over.
      if (llhttp.requests.at(-1)?.message.headers.upgrade !== undefined) {
        before = takenCount;
        llhttp.close();
        llhttp = new LlhttpConnection();
      }
      answer = read(bytes, at);
    }
    if (answer.status === "incomplete") finding ??= compareIncomplete(bytes, at, takenCount - before, llhttp, read);
    return { finding, takenCount, lastStatus: answer.status };
  } finally {
    llhttp.close();
  }
}

function compareTaken(
  bytes: Buffer,
  answer: ReaderAnswer & { readonly status: "taken" },
  start: number,
  index: number,
  llhttp: LlhttpConnection,
): string | undefined {
  const which = `request ${index}`;
  const [bodyStart, end] = [answer.bodyStart - start, answer.end - start];
  if (!(bodyStart > 0 && end >= bodyStart && end <= bytes.length)) return `${which} has an impossible end, ${end}`;
  llhttp.feed(bytes.subarray(0, end - 1));
  if (llhttp.wholeCount > index) return `${which}: llhttp ends it before byte ${end}`;
  llhttp.feed(bytes.subarray(end - 1, end));
  if (llhttp.refusal !== undefined) return `${which} is taken, but llhttp refuses it: ${llhttp.refusal}`;
  const request = llhttp.requests[index];
  if (request === undefined || llhttp.wholeCount !== index + 1)
    return `${which}: llhttp does not end it at byte ${end}`;
  if (!bytes.toString("latin1", 0, end).startsWith(`${request.line}\r\n`)) {
    return `${which}: llhttp reads another request line, ${request.line}`;
  }
  if (!bodyOf(request).equals(bytes.subarray(bodyStart, end))) return `${which}: llhttp reads another body`;
  if (request.isSpecial) return `${which} is taken, but Node would not give it to its request listener`;
  if (request.staysOpen === answer.isLast) return `${which}: llhttp disagrees about whether it is the last`;
  return undefined;
}

function compareIncomplete(
  bytes: Buffer,
  start: number,
  index: number,
  llhttp: LlhttpConnection,
  read: ReadRequest,
): string | undefined {
  llhttp.feed(bytes.subarray(start));
  if (llhttp.wholeCount > index) return `request ${index} is whole for llhttp, and the reader waits for more of it`;
  if (llhttp.refusal === undefined) return undefined;
  // A header line may be judged when it has ended, a byte later than llhttp does.
  const withLineEnd = Buffer.concat([bytes, Buffer.from("\r\n")]);
  if (read(withLineEnd, start).status !== "incomplete") return undefined;
  return `request ${index} is refused by llhttp (${llhttp.refusal}), and the reader waits for more of it`;
}
