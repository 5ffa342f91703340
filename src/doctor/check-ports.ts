import { once } from "node:events";
import { createServer } from "node:net";
import { localUrl } from "../config/hosts.ts";
import type { Settings } from "../config/settings.ts";
import { codeOf, httpGet } from "./http-get.ts";
import type { Report } from "./run-checks.ts";

type ConfiguredPort = ReturnType<typeof portsOf>[number];

/**
 * The ports of these settings, each with a request that needs no credential and what is in Latchkey's answer to it. Ports
 * that are wrong are reported elsewhere, and 0 takes a free one.
 */
function portsOf(settings: Partial<Settings>) {
  const { host = "", port = 0, tls, internalHost = "", internalPort = 0, internalTls } = settings;
  const { internalSecrets = [], internalClientCa } = settings;
  // Callers without a certificate then fail in the handshake.
  const isClientCertRequired = internalClientCa !== undefined && internalSecrets.length === 0;
  const ports = [
    {
      ...{ setting: "PORT", host, port, isTls: tls !== undefined, isClientCertRequired: false },
      ...{ path: "livez", answer: '"status":"alive"' },
    },
    {
      ...{ setting: "LATCHKEY_INTERNAL_PORT", host: internalHost, port: internalPort },
      ...{ isTls: internalTls !== undefined, isClientCertRequired },
      ...{ path: "", answer: "this is the internal port" },
    },
  ];
  return ports.filter((each) => each.host !== "" && each.port !== 0);
}

/**
 * Whether the ports can be bound, by binding them for a moment. A port that the service of this configuration has is no
 * problem. `isServed` says whether that service may run.
 */
export async function checkPorts(
  settings: Partial<Settings>,
  isServed: () => boolean,
  { checked, found }: Report,
): Promise<void> {
  for (const configured of portsOf(settings)) {
    const { setting, host, port } = configured;
    const address = `${host}:${port} (${setting})`;
    const code = await bindingError(host, port);
    const service = code === "EADDRINUSE" && isServed() ? await findService(configured) : undefined;
    if (code === undefined) checked(`${address} is free`);
    else if (service !== undefined) checked(`${address} is in use by ${service}`);
    else found("port-unusable", `${address} cannot be bound: ${reasonOf(code)}`, fixOf(configured, code));
  }
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

/** Who has the port, if it is or may be the service; undefined for another program. Its certificate may be for other names. */
async function findService(configured: ConfiguredPort): Promise<string | undefined> {
  const { host, port, isTls, isClientCertRequired, path, answer } = configured;
  try {
    const url = new URL(path, localUrl(host, port, isTls ? "https" : "http"));
    const { text } = await httpGet(url, { isUntrusted: true });
    return text.includes(answer) ? "a Latchkey service that runs" : undefined;
  } catch (error) {
    // Doctor has no certificate to show: the service's own need not be one that its clients' authority has issued.
    const isRefused = certificateRefusals.has(codeOf(error));
    return isClientCertRequired && isRefused
      ? "a process that wants a client certificate, as the service does"
      : undefined;
  }
}

/** The connection is reset behind the alert, and the reset may be noticed first. */
const certificateRefusals = new Set(["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "ECONNRESET", "EPIPE"]);

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
