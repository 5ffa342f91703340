/** The URL at which this machine reaches a listener. */
export function localUrl(host: string, port: number, scheme: "http" | "https" = "http"): string {
  return `${scheme}://${inUrl(isEveryAddress(host) ? "127.0.0.1" : host)}:${port}`;
}

export function isEveryAddress(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

export function inUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
