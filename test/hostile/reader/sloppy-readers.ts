import { type ReadRequest, readWithOurs } from "./our-reader.ts";

/* Readers with one mistake each, which the comparison has to find. Each sees other bytes than llhttp does. */

/** Lets the service's reader see changed bytes of the same length, so that its ends stay true. */
function seeing(change: (text: string) => string): ReadRequest {
  return (bytes, start) => readWithOurs(Buffer.from(change(bytes.toString("latin1")), "latin1"), start);
}

const blank = (found: string) => `X-${"x".repeat(Math.max(0, found.length - 2))}`;

export const sloppyReaders: Readonly<Record<string, ReadRequest>> = {
  "overlooks chunks": seeing((text) => text.replace(/transfer-encoding/gi, blank)),
  "overlooks a request to close": seeing((text) =>
    text.replace(/(?<=connection: )close\b/gi, "a    ").replace(/\r\nconnection(?=: a )/gi, "\r\nX-nnection"),
  ),
  "goes on after a request to close": (bytes, start) => {
    const answer = readWithOurs(bytes, start);
    return answer.status === "taken" ? { ...answer, isLast: false } : answer;
  },
  "takes a second length": seeing((text) => text.replace(/(?<=content-length:.*?)content-length/gis, blank)),
  "takes a space before a colon": seeing((text) => text.replace(/(?<=\w) :/g, "x:")),
  "takes a NUL": seeing((text) => text.replaceAll("\0", "x")),
  "takes a bare CR": seeing((text) => text.replace(/\r(?!\n)/g, " ")),
  "waits for a body that is there": (bytes, start) => {
    const answer = readWithOurs(bytes, start);
    return answer.status === "taken" && answer.end === bytes.length ? { status: "incomplete" } : answer;
  },
  "takes the last byte of a body for the next request's": (bytes, start) => {
    const answer = readWithOurs(bytes, start);
    return answer.status === "taken" ? { ...answer, end: answer.end - 1 } : answer;
  },
};
