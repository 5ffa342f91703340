import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findOrInstall, isExecutable, pathFolders } from "../../test/support/debian-programs.ts";
import {
  connectionsMax,
  guardedScript,
  type KeyFile,
  manyKeysScript,
  oneCallScript,
  oneKeyScript,
  type RepeatedCall,
} from "./wrk-scripts.ts";

const run = promisify(execFile);
export const loadCore = "1";
const longestMs = 3_600_000;

export interface Served {
  readonly count: number;
  readonly perSecond: number;
  /** Answers of another status than 200: not part of the count. */
  readonly refused: number;
}

type Latency = (ms: number) => Promise<number>;

export type Load = (ms: number) => Promise<Served>;

export interface HttpLoadOptions {
  readonly connections?: number;
  /** `false`: on all cores, beside the server. */
  readonly pinned?: boolean;
  /** Over TLS. The certificate is not checked. */
  readonly tls?: boolean;
  /** Opens a new connection for each request. */
  readonly closing?: boolean;
  /** Also counts rejected requests. */
  readonly countRefused?: boolean;
}

/** Loads that take next to nothing themselves, so that the server is what is measured. */
export interface Loads {
  /** Verifies one key over HTTP/1.1. */
  json(port: number, key: string, options?: HttpLoadOptions): Load;
  /** Makes one call again and again, over HTTP/1.1. */
  call(port: number, call: RepeatedCall): Load;
  /** Verifies many keys, in turn or in random order. */
  manyKeys(port: number, keys: KeyFile, order: "in turn" | "random", options?: HttpLoadOptions): Load;
  /** Verifies each key once, in the order of the file, over many connections. Counts nothing: the server does. */
  eachKeyOnce(port: number, keys: KeyFile): () => Promise<void>;
  grpc(port: number, frame: Uint8Array, options?: Pick<HttpLoadOptions, "tls">): Load;
  /** Sends a key along to an API behind a proxy. */
  guarded(port: number, key: string): Load;
  /** The median of the time that one request takes with nothing else under way, in microseconds. */
  medianLatencyMicros(port: number, key: string): Latency;
  /** The same of a request to an API behind a proxy. */
  guardedLatencyMicros(port: number, key: string): Latency;
}

export function prepareLoads(folder: string): Loads {
  const wrk = findProgram("wrk", "wrk");
  const h2load = findProgram("h2load", "nghttp2-client");
  let files = 0;
  const save = (content: string | Uint8Array) => {
    const path = join(folder, `load-${files++}`);
    writeFileSync(path, content);
    return path;
  };
  const baseUrl = (port: number, tls = false) => `${tls ? "https" : "http"}://127.0.0.1:${port}`;
  const runWrk = (port: number, script: string, options: HttpLoadOptions, ms: number) => {
    const { connections = 32, pinned = true, tls } = options;
    const url = `${baseUrl(port, tls)}/v1/keys.verifyKey`;
    // A slow contestant is measured, not given up.
    const flags = ["-t1", `-c${connections}`, `-d${seconds(ms)}`, "--timeout", "10s", "--latency"];
    return runProgram(pinned, wrk, ...flags, "-s", script, url);
  };
  const wrkLoad = (port: number, source: string, options: HttpLoadOptions): Load => {
    const script = save(source);
    return async (ms) => countServed(await runWrk(port, script, options, ms), options);
  };
  const wrkLatency = (port: number, source: string): Latency => {
    const script = save(source);
    return async (ms) => {
      const report = await runWrk(port, script, { connections: 1 }, ms);
      const [, digits, unit] = /50%\s+([\d.]+)(us|ms)/.exec(report) ?? [];
      if (digits === undefined) throw unexpected(report);
      return Number(digits) * (unit === "ms" ? 1000 : 1);
    };
  };
  return {
    json: (port, key, options = {}) => wrkLoad(port, oneKeyScript(key, options.closing), options),
    call: (port, call) => wrkLoad(port, oneCallScript(call), {}),
    manyKeys: (port, keys, order, options = {}) => wrkLoad(port, manyKeysScript(port, keys, order), options),
    eachKeyOnce(port, keys) {
      const script = save(manyKeysScript(port, keys, "once"));
      return async () => {
        const report = await runWrk(port, script, { connections: connectionsMax }, longestMs);
        // It ends by itself, without a report.
        if (report.includes("Requests/sec")) throw new Error(`not all keys were verified:\n${report}`);
      };
    },
    grpc(port, frame, { tls } = {}) {
      const data = save(frame);
      const headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"];
      const url = `${baseUrl(port, tls)}/latchkey.v1.KeysService/VerifyKey`;
      return async (ms) => {
        const report = await runProgram(true, h2load, "-c4", "-m16", "-D", seconds(ms), "-d", data, ...headers, url);
        if (numberIn(report, /(\d+) failed/) > 0) throw new Error(`not everything was served:\n${report}`);
        return { count: numberIn(report, /(\d+) 2xx/), perSecond: numberIn(report, /, ([\d.]+) req\/s/), refused: 0 };
      };
    },
    guarded: (port, key) => wrkLoad(port, guardedScript(key), {}),
    medianLatencyMicros: (port, key) => wrkLatency(port, oneKeyScript(key)),
    guardedLatencyMicros: (port, key) => wrkLatency(port, guardedScript(key)),
  };
}

function countServed(report: string, { countRefused = false }: HttpLoadOptions): Served {
  if (report.includes("Socket errors")) throw new Error(`not everything was answered:\n${report}`);
  const refused = countRefused ? 0 : Number(/Non-2xx or 3xx responses: (\d+)/.exec(report)?.[1] ?? 0);
  const answered = numberIn(report, /(\d+) requests in/);
  if (answered === 0) throw new Error(`nothing was answered:\n${report}`);
  // A few are said beside the figures; more of them would make a contestant look fast by turning callers away.
  if (refused > answered / 100) throw new Error(`too many were refused:\n${report}`);
  const count = answered - refused;
  return { count, refused, perSecond: (numberIn(report, /Requests\/sec:\s+([\d.]+)/) * count) / answered };
}

async function runProgram(pinned: boolean, program: string, ...args: string[]): Promise<string> {
  const { stdout } = pinned ? await run("taskset", ["-c", loadCore, program, ...args]) : await run(program, args);
  return stdout;
}

/** Both programs take whole seconds only. */
function seconds(ms: number): string {
  return `${Math.max(1, Math.round(ms / 1000))}`;
}

function numberIn(report: string, pattern: RegExp): number {
  const [, digits] = pattern.exec(report) ?? [];
  if (digits === undefined) throw unexpected(report);
  return Number(digits);
}

function unexpected(report: string): Error {
  return new Error(`the load did not report as expected:\n${report}`);
}

function findProgram(name: string, debianPackage: string): string {
  const find = () =>
    pathFolders()
      .map((folder) => join(folder, name))
      .find(isExecutable);
  return findOrInstall({ name, debianPackage, find });
}
