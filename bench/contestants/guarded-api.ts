import { childrenOf } from "../../test/support/local-server.ts";
import { ProxyServer } from "../../test/support/proxy-server.ts";
import type { Bench } from "../harness/section.ts";
import { rootKey } from "./latchkey.ts";
import { cpuMsOf, residentBytesOf, type ServerProcess, serverCore } from "./server-process.ts";

/** The line of docs/nginx.md that makes nginx ask. */
const askLine = "auth_request /_latchkey;";

export interface GuardedApiOptions {
  /** Where the program is. */
  readonly nginx: string;
  readonly api: ServerProcess;
  /** The server that nginx asks. Without it, nginx passes everything on unasked. */
  readonly asked?: ServerProcess;
}

/** An API behind nginx. Its processor time is that of all parts together. */
export interface GuardedApi extends ServerProcess {
  readonly parts: { readonly nginx: ServerProcess; readonly api: ServerProcess; readonly asked?: ServerProcess };
}

/** Runs nginx as documented, with one worker process, on the same core as the servers behind it. */
export async function startGuardedApi(
  bench: Pick<Bench, "atEnd">,
  { nginx: program, api, asked }: GuardedApiOptions,
): Promise<GuardedApi> {
  const addressOf = ({ port }: ServerProcess) => `127.0.0.1:${port}`;
  const address = addressOf(asked ?? api);
  const proxy = await ProxyServer.start("nginx", ["taskset", "-c", serverCore, program], {
    latchkey: [address, address],
    api: addressOf(api),
    rootKey,
    edit: asked === undefined ? [askLine, ""] : undefined,
  });
  bench.atEnd(() => proxy.remove());
  const { port } = proxy;
  const master = proxy.pid as number;
  const workers = childrenOf(master);
  if (workers.length !== 1) throw new Error(`nginx has ${workers.length} worker processes instead of one`);
  const processes = [master, ...workers].map((pid) => ({
    cpuMs: () => cpuMsOf(pid),
    residentBytes: () => residentBytesOf(pid),
  }));
  const nginx = { pid: master, port, ...sumOf(processes) };
  const parts = { nginx, api, ...(asked !== undefined && { asked }) };
  return { pid: master, port, ...sumOf(Object.values(parts)), parts };
}

type Usage = Pick<ServerProcess, "cpuMs" | "residentBytes">;

function sumOf(processes: readonly Usage[]): Usage {
  const sum = (of: (each: Usage) => number) => processes.reduce((total, each) => total + of(each), 0);
  return { cpuMs: () => sum((each) => each.cpuMs()), residentBytes: () => sum((each) => each.residentBytes()) };
}
