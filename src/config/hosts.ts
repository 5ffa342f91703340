import { isIP } from "node:net";

/** The URL at which this machine reaches a listener. */
export function localUrl(host: string, port: number, scheme: "http" | "https" = "http"): string {
  return `${scheme}://${inUrl(isEveryAddress(host) ? "127.0.0.1" : host)}:${port}`;
}

export function isEveryAddress(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Whether only this machine can reach a listener that is bound to it. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

export function inUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** The host of a URL, an IPv6 address without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}
