import net from "node:net";

/** How a connection goes on after its first bytes. */
export type Ending =
  /** The rest comes later, as a segment of its own. */
  | "cut"
  /** Nothing more comes, and the client says so at once. */
  | "fin"
  /** The client sends nothing more, and closes its side after it got the answers. */
  | "late fin"
  | "rst";

export interface Heard {
  /** All answers, without the parts that always differ, such as ids and dates. */
  readonly answers: string;
  /** Who ended the connection first. A client ends it when it has heard nothing for a while. */
  readonly closedBy: "server" | "client";
}

/** Long enough for a segment to be read before the next one is sent. */
const pauseMs = 4;
/** How long a client hears nothing before it ends the connection. */
export const quietMs = 400;
/** How long it then waits for the server to close its side. */
const giveUpMs = 5000;

export function sendCut(
  port: number,
  { bytes, at, ending }: { readonly bytes: Buffer; readonly at: number; readonly ending: Ending },
  silenceMs = quietMs,
): Promise<Heard> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let closedBy: Heard["closedBy"] = "server";
    // The test is about whether the server answers after the client's FIN, so the socket stays half open.
    const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    socket.setTimeout(silenceMs, () => {
      closedBy = "client";
      if (socket.writableEnded) socket.destroy();
      else socket.end();
      // Without anything more to hear, this is not called again, and a server may wait for the rest of a request.
      setTimeout(() => socket.destroy(), giveUpMs).unref();
    });
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("end", () => socket.end());
    socket.on("error", () => {});
    socket.on("close", () => {
      resolve({ answers: withoutParticulars(Buffer.concat(chunks)), closedBy });
    });
    socket.on("connect", () => {
      if (at > 0) socket.write(bytes.subarray(0, at));
      if (ending === "fin") socket.end();
      else setTimeout(goOn, pauseMs);
    });
    const goOn = () => {
      if (ending === "cut") socket.write(bytes.subarray(at));
      else if (ending === "late fin") socket.end();
      else {
        closedBy = "client";
        socket.resetAndDestroy();
      }
    };
  });
}

/** Ids, dates, and numbers that depend on how many other connections came first. */
function withoutParticulars(answers: Buffer): string {
  return answers
    .toString("latin1")
    .replace(/req_[0-9A-Za-z]{22}/g, "<id>")
    .replace(/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, "<date>")
    .replace(/"remaining":\d+/g, '"remaining":<number>');
}
