import { isIPv4 } from "node:net";

/** Those that were wrong by themselves are undefined and already reported. */
interface PortSettings {
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly internalHost: string | undefined;
  readonly internalPort: number | undefined;
}

/** Both listeners on one port of one address: the second would find it taken. Two names may mean different addresses. */
export function portProblems({ host, port, internalHost, internalPort }: PortSettings): readonly string[] {
  if (host === undefined || internalHost === undefined) return [];
  if (port === undefined || port === 0 || port !== internalPort) return [];
  if (!includes(host, internalHost) && !includes(internalHost, host)) return [];
  const shared = includes(host, internalHost) ? internalHost : host;
  return [`PORT must differ from LATCHKEY_INTERNAL_PORT: both would listen on ${shared}`];
}

/** Whether who listens on the one takes the other too. :: takes the addresses of IPv4 as well. */
function includes(host: string, other: string): boolean {
  if (host === "0.0.0.0") return isIPv4(other);
  return host === "::" || host.toLowerCase() === other.toLowerCase();
}
