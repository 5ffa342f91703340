import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { VerifyKeyRequestSchema } from "../../gen/latchkey/v1/keys_pb.js";
import { findOrInstall, isExecutable, pathFolders } from "../../test/support/debian-programs.ts";

const run = promisify(execFile);
const loadCore = "1";

/** Loads that take next to nothing themselves, so that the server is what is measured. Each answers how many were served. */
export interface Loads {
  json(port: number, body: string): (ms: number) => Promise<number>;
  /** Sends the bodies in turn, on 64 connections. Whoever is turned away counts too. */
  crowd(port: number, bodies: readonly string[]): (ms: number) => Promise<number>;
  grpc(port: number, frame: Uint8Array): (ms: number) => Promise<number>;
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
  return {
    json(port, body) {
      const script = save(
        `wrk.method = "POST"\nwrk.body = [[${body}]]\nwrk.headers["content-type"] = "application/json"\n`,
      );
      const url = `http://127.0.0.1:${port}/v1/keys.verifyKey`;
      return async (ms) => {
        const report = await pinned(wrk, "-t1", "-c32", `-d${seconds(ms)}`, "-s", script, url);
        if (/Non-2xx|Socket errors/.test(report)) throw new Error(`not everything was served:\n${report}`);
        return numberIn(report, /(\d+) requests in/);
      };
    },
    crowd(port, bodies) {
      const script = save(
        `local bodies = { ${bodies.map((body) => `[[${body}]]`).join(", ")} }\nlocal next = 0\n` +
          'wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\n' +
          "request = function()\n  next = next % #bodies + 1\n  return wrk.format(nil, nil, nil, bodies[next])\nend\n",
      );
      const url = `http://127.0.0.1:${port}/v1/keys.verifyKey`;
      return async (ms) => {
        const report = await pinned(wrk, "-t1", "-c64", `-d${seconds(ms)}`, "-s", script, url);
        if (/Socket errors/.test(report)) throw new Error(`not everything was answered:\n${report}`);
        return numberIn(report, /(\d+) requests in/);
      };
    },
    grpc(port, frame) {
      const data = save(frame);
      const headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"];
      const url = `http://127.0.0.1:${port}/latchkey.v1.KeysService/VerifyKey`;
      return async (ms) => {
        const report = await pinned(h2load, "-c4", "-m16", "-D", seconds(ms), "-d", data, ...headers, url);
        if (numberIn(report, /(\d+) failed/) > 0) throw new Error(`not everything was served:\n${report}`);
        return numberIn(report, /(\d+) 2xx/);
      };
    },
  };
}

/** A verification of the key as a gRPC client sends it. */
export function frameOf(key: string): Uint8Array {
  const message = toBinary(VerifyKeyRequestSchema, create(VerifyKeyRequestSchema, { key }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function pinned(program: string, ...args: string[]): Promise<string> {
  return (await run("taskset", ["-c", loadCore, program, ...args])).stdout;
}

/** Both programs take whole seconds only. */
function seconds(ms: number): string {
  return `${Math.max(1, Math.round(ms / 1000))}`;
}

function numberIn(report: string, pattern: RegExp): number {
  const [, digits] = pattern.exec(report) ?? [];
  if (digits === undefined) throw new Error(`the load did not report as expected:\n${report}`);
  return Number(digits);
}

function findProgram(name: string, debianPackage: string): string {
  const find = () =>
    pathFolders()
      .map((folder) => join(folder, name))
      .find(isExecutable);
  return findOrInstall({ name, debianPackage, find });
}
