import { requireEncodedLogin } from "./url-login.ts";

const urlForm = /^(?<scheme>postgres(?:ql)?:\/\/)(?<login>[^\s/?#]*@)?(?<hosts>[^\s/?#@]*)(?<rest>[/?#]\S*)?$/;
const sessionAttributes = /[?&]target_session_attrs=(?<value>[^&#]*)/;

/**
 * The content of DATABASE_URL, as one URL for each server that it names: `postgres://user@a:5432,b:5432/database` names
 * two. Throws an Error whose message completes "DATABASE_URL …" and repeats nothing of the text.
 */
export function splitPostgresUrl(text: string): readonly string[] {
  requireEncodedLogin(text);
  const { scheme, login = "", hosts = "", rest = "" } = urlForm.exec(text)?.groups ?? {};
  if (scheme === undefined || hosts + rest === "") {
    throw new Error("must be a URL such as postgres://user:password@host:5432/database");
  }
  const wanted = sessionAttributes.exec(rest)?.groups?.value;
  if (wanted !== undefined && wanted !== "read-write" && wanted !== "primary") {
    throw new Error("must have no target_session_attrs but read-write or primary: only the primary is used");
  }
  const servers = hosts.split(",");
  if (servers.length > 1 && servers.includes("")) throw new Error("must have no empty name among its servers");
  if (new Set(servers).size < servers.length) throw new Error("must name each server once");
  return servers.map((host) => scheme + login + host + rest);
}

/**
 * The same for people: without the password and without options, which can hold one too. An @ behind the host may be
 * the end of a password such as `a/b?c=d`, so nothing of such a URL is shown.
 */
export function printablePostgresUrl(text: string): string {
  const { scheme = "", login = "", hosts = "", rest = "" } = urlForm.exec(text)?.groups ?? {};
  if (rest.includes("@")) return `${scheme}…`;
  const user = login.replace(/[:@].*$/, "");
  return `${scheme}${user === "" ? "" : `${user}@`}${hosts}${rest.replace(/[?#].*$/, "")}`;
}
