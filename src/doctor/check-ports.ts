import { once } from "node:events";
import { createServer } from "node:net";
import { localUrl } from "../config/local-url.ts";
import type { Settings } from "../config/settings.ts";
import { codeOf, httpGet } from "./http-get.ts";
import type { Check } from "./run-checks.ts";

interface ConfiguredPort {
  readonly setting: "PORT" | "LATCHKEY_INTERNAL_PORT";
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  /** A request that needs no credential, and what is in Latchkey's answer to it. */
  readonly path: string;
  readonly answer: string;
}

/** The ports of these settings. Those that are wrong are reported elsewhere, and 0 takes a free one. */
function portsOf(settings: Partial<Settings>): readonly ConfiguredPort[] {
  const { host = "", port = 0, tls, internalHost = "", internalPort = 0, internalTls } = settings;
  const ports: readonly ConfiguredPort[] = [
    { setting: "PORT", host, port, isTls: tls !== undefined, path: "livez", answer: '"status":"alive"' },
    {
      ...{ setting: "LATCHKEY_INTERNAL_PORT", host: internalHost, port: internalPort },
      ...{ isTls: internalTls !== undefined, path: "", answer: "this is the internal port" },
    },
  ];
  return ports.filter((each) => each.host !== "" && each.port !== 0);
}

/**
 * Whether the ports can be bound, by binding them for a moment. A port that the service of this configuration has is no
 * problem. `isServed` says whether that service may run.
 */
export function checkPorts(settings: Partial<Settings>, isServed: () => boolean): Check {
  return {
    area: "ports",
    async run({ looked, found }) {
      for (const configured of portsOf(settings)) {
        const { setting, host, port } = configured;
        const address = `${host}:${port} (${setting})`;
        const code = await bindingError(host, port);
        if (code === undefined) looked(`${address} is free`);
        else if (code === "EADDRINUSE" && isServed() && (await isLatchkey(configured)))
          looked(`${address} is in use by a Latchkey service that runs`);
        else found("port-unusable", `${address} cannot be bound: ${reasonOf(code)}`, fixOf(configured, code));
      }
    },
  };
}

async function bindingError(host: string, port: number): Promise<string | undefined> {
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen({ host, port });
    await once(server, "listening");
    return undefined;
  } catch (error) {
    return codeOf(error);
  } finally {
    server.close();
  }
}

/** Whether Latchkey answers there. Its certificate may be for other names. */
async function isLatchkey({ host, port, isTls, path, answer }: ConfiguredPort): Promise<boolean> {
  try {
    const url = new URL(path, localUrl(host, port, isTls ? "https" : "http"));
    return (await httpGet(url, { isUntrusted: true })).text.includes(answer);
  } catch {
    return false;
  }
}

function reasonOf(code: string): string {
  if (code === "EADDRINUSE") return "another process has it";
  if (code === "EACCES") return "this user may not use it";
  return `this machine has no such address (${code})`;
}

function fixOf({ setting, host, port }: ConfiguredPort, code: string): string {
  if (code === "EADDRINUSE")
    return `ss -ltnp 'sport = :${port}' names the process; stop it, or set ${setting} to another.`;
  if (code === "EACCES")
    return `Set ${setting} to a port from 1024 on, or allow it: AmbientCapabilities=CAP_NET_BIND_SERVICE for systemd.`;
  const name = setting === "PORT" ? "HOST" : "LATCHKEY_INTERNAL_HOST";
  return `Set ${name} to an address of this machine (ip address) instead of ${host}; 0.0.0.0 is every one.`;
}
