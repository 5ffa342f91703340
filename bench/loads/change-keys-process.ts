// Changes keys at random moments, as independent callers would, or one after the other, as one caller would, in a process of
// its own: it starts with an `Order`, and stops with any other message. Requests are written and answers counted by hand, so
// that it takes little of the core that it shares with the load.
import net from "node:net";

export interface Order {
  readonly port: number;
  readonly rootKey: string;
  readonly keyIds: readonly string[];
  readonly perSecond: number | "one after the other";
}

/** How many changes were asked for, how many of them only at the end, and how many were answered with 200. */
export interface Changed {
  readonly asked: number;
  readonly late: number;
  readonly done: number;
}

/** One connection is answered in order: a slow change would hold up those behind it. */
const connections = 8;
const tickMs = 1;
const answeredMs = 5000;

let stop: (() => void) | undefined;
let number = 0;

process.on("message", (order: Order | "stop") => {
  if (order === "stop") stop?.();
  else void changeKeys(order).then((changed) => process.send?.(changed));
});

async function changeKeys({ port, rootKey, keyIds, perSecond }: Order): Promise<Changed> {
  let done = 0;
  let answered = 0;
  const sockets = Array.from({ length: connections }, () => net.connect({ port, host: "127.0.0.1", noDelay: true }));
  for (const socket of sockets) {
    // Each answer arrives in one piece: it is short, and comes from the same machine.
    socket.on("data", (bytes) => {
      const text = bytes.toString("latin1");
      answered += text.split("HTTP/1.1 ").length - 1;
      done += text.split("HTTP/1.1 200 ").length - 1;
      if (perSecond === "one after the other" && isRunning) ask();
    });
  }
  const head = `POST /v1/keys.updateKey HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${rootKey}\r\ncontent-type: application/json\r\n`;
  const startedMs = performance.now();
  let asked = 0;
  let nextMs = 0;
  let isRunning = true;
  const ask = () => {
    const body = JSON.stringify({ keyId: keyIds[number % keyIds.length], name: `name ${number}`, meta: { n: number } });
    sockets[number % connections]?.write(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    asked++;
    number++;
  };
  const askAllDue = () => {
    if (perSecond === "one after the other") return;
    for (const nowMs = performance.now() - startedMs; nextMs <= nowMs; ask())
      nextMs -= (Math.log(1 - Math.random()) * 1000) / perSecond;
  };
  if (perSecond === "one after the other") ask();
  const pace = setInterval(askAllDue, tickMs);
  await new Promise<void>((resolve) => {
    stop = resolve;
  });
  isRunning = false;
  clearInterval(pace);
  const inTime = asked;
  // What could not be sent while the machine stood still.
  askAllDue();
  const untilMs = performance.now() + answeredMs;
  while (answered < asked && performance.now() < untilMs) await new Promise((resolve) => setTimeout(resolve, tickMs));
  for (const socket of sockets) socket.destroy();
  return { asked, late: asked - inTime, done };
}
