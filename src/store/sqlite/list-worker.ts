// Reads lists on a connection of its own, in its own thread: a page may take milliseconds, and must not block the event loop.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { ListReply, ListRequest, ListSetup } from "./list-reader.ts";
import type { Statement } from "./writer-protocol.ts";

/** Texts differ by their filters and limits. */
const preparedMax = 50;
/** Taken page by page, as they are read. The system's own cache holds the rest of the file. */
const cacheKb = 16 * 1024;

if (parentPort === null) throw new Error("lists are read in a worker thread");
const port = parentPort;
const db = new DatabaseSync((workerData as ListSetup).file, { readOnly: true, timeout: 5000 });
db.exec(`PRAGMA cache_size = -${cacheKb}`);
const prepared = new Map<string, StatementSync>();

port.on("message", (request: ListRequest) => {
  if (request === "close") {
    db.close();
    port.close();
  } else {
    port.postMessage(read(request));
  }
});

/** Each statement is a transaction of its own, so that it sees everything that was committed before it. */
function read({ sql, parameters }: Statement): ListReply {
  try {
    return { rows: prepare(sql).all(...parameters) };
  } catch (error) {
    const { errcode, message } = error as { errcode?: number; message: string };
    return { failed: { resultCode: errcode ?? 0, message } };
  }
}

function prepare(sql: string): StatementSync {
  let statement = prepared.get(sql);
  if (statement === undefined) {
    if (prepared.size >= preparedMax) prepared.clear();
    statement = db.prepare(sql);
    prepared.set(sql, statement);
  }
  return statement;
}
