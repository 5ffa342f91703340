import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { sourceProgram } from "../../test/support/artefact.ts";
import { freePort } from "../../test/support/local-server.ts";
import { builtProgram, rootKey } from "../contestants/latchkey.ts";
import { residentBytesOf } from "../contestants/server-process.ts";
import type { Bench, Section } from "../harness/section.ts";
import { median } from "../rounds.ts";

const starts = 5;
const startMsMax = 30_000;
/** Long enough for what a start leaves behind to be collected. */
const idleAfterMs = 2000;

interface Start {
  readonly readyMs: number;
  readonly idleBytes: number;
}

export const start: Section<"ready" | "readyRatio" | "uncachedRatio" | "idle" | "idleRatio"> = {
  title: "Start",
  how: `The program as it ships (\`dist\`) beside the sources, which Node strips of their types: ${starts} starts each, in turns, embedded store, one thread, in an empty data folder, not pinned. Ready: from the start of the process to the first 200 of \`/readyz\`. Compiled code is kept between starts as it is for users; "with nothing kept" is without it. Idle: resident memory ${idleAfterMs / 1000} s after that.`,
  goals: {
    ready: { what: `start to ready, median of ${starts}`, unit: "s", atMost: 1 },
    readyRatio: { what: "start to ready, beside the sources", unit: "×", atMost: 0.65 },
    uncachedRatio: { what: "the same where no compiled code is kept", unit: "×" },
    idle: { what: "idle memory", unit: "MB" },
    idleRatio: { what: "idle memory, beside the sources", unit: "×", atMost: 0.75 },
  },
  async measure(bench) {
    const programs = { sources: sourceProgram, artefact: await builtProgram() };
    const kept = { XDG_CACHE_HOME: bench.folder };
    const nothingKept = { NODE_DISABLE_COMPILE_CACHE: "1" };
    // The first start has nothing to take from.
    for (const program of Object.values(programs)) await startOnce(bench, program, kept, 0);
    const { sources, artefact } = await inTurn(bench, programs, kept, idleAfterMs);
    const uncached = await inTurn(bench, programs, nothingKept, 0);
    const line = (name: string, { readyMs, idleBytes }: Start, { readyMs: uncachedMs }: Start) =>
      `| ${name} | ${readyMs.toFixed(0)} | ${uncachedMs.toFixed(0)} | ${(idleBytes / 2 ** 20).toFixed(0)} |`;
    const table = [
      "| | ready, ms | with nothing kept, ms | idle, MB |",
      "|---|---|---|---|",
      line("sources", sources, uncached.sources),
      line("`dist`", artefact, uncached.artefact),
    ];
    return {
      text: [table.join("\n")],
      figures: {
        ready: artefact.readyMs / 1000,
        readyRatio: artefact.readyMs / sources.readyMs,
        uncachedRatio: uncached.artefact.readyMs / uncached.sources.readyMs,
        idle: artefact.idleBytes / 2 ** 20,
        idleRatio: artefact.idleBytes / sources.idleBytes,
      },
    };
  },
};

/** The medians of each program. */
async function inTurn<Name extends string>(
  bench: Bench,
  programs: Readonly<Record<Name, string>>,
  environment: Readonly<Record<string, string>>,
  idleMs: number,
): Promise<Record<Name, Start>> {
  const names = Object.keys(programs) as Name[];
  const all = Object.fromEntries(names.map((name) => [name, [] as Start[]])) as Record<Name, Start[]>;
  for (let round = 0; round < starts; round++) {
    for (const name of names) all[name].push(await startOnce(bench, programs[name], environment, idleMs));
  }
  const medians = names.map((name) => [
    name,
    {
      readyMs: median(all[name].map(({ readyMs }) => readyMs)),
      idleBytes: median(all[name].map(({ idleBytes }) => idleBytes)),
    },
  ]);
  return Object.fromEntries(medians) as Record<Name, Start>;
}

async function startOnce(
  bench: Bench,
  program: string,
  environment: Readonly<Record<string, string>>,
  idleMs: number,
): Promise<Start> {
  const port = await freePort();
  const env = {
    PATH: process.env.PATH,
    PORT: `${port}`,
    LATCHKEY_INTERNAL_PORT: "0",
    LATCHKEY_DATA_DIR: mkdtempSync(join(bench.folder, "start-")),
    LATCHKEY_ROOT_KEY: rootKey,
    LATCHKEY_LOG_LEVEL: "warn",
    LATCHKEY_WORKERS: "1",
    ...environment,
  };
  const startedMs = performance.now();
  const child = spawn(process.execPath, [program, "serve"], { env, stdio: ["ignore", "ignore", "inherit"] });
  bench.atEnd(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  while (!(await isReady(port))) {
    const hasEnded = child.exitCode !== null || child.signalCode !== null;
    if (hasEnded || performance.now() - startedMs > startMsMax) throw new Error("Latchkey did not get ready");
    await delay(5);
  }
  const readyMs = performance.now() - startedMs;
  await delay(idleMs);
  const idleBytes = residentBytesOf(child.pid as number);
  // In order, because compiled code is kept when a process ends by itself.
  child.kill();
  await exited;
  return { readyMs, idleBytes };
}

function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  );
}
