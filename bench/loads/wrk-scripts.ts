import { readFileSync, writeFileSync } from "node:fs";

/** Keys of one length, one after the other without anything in between: what a script can read a million of in no time. */
export interface KeyFile {
  readonly path: string;
  readonly count: number;
  readonly keyLength: number;
}

export function writeKeyFile(path: string, keys: readonly string[]): KeyFile {
  const keyLength = keys[0]?.length ?? 0;
  if (keys.some((key) => key.length !== keyLength)) throw new Error("the keys are not of one length");
  writeFileSync(path, keys.join(""));
  return { path, count: keys.length, keyLength };
}

export function readKeyFile({ path, count, keyLength }: KeyFile): string[] {
  const text = readFileSync(path, "latin1");
  return Array.from({ length: count }, (_, i) => text.slice(i * keyLength, (i + 1) * keyLength));
}

/** The same keys in random order, in another file. */
export function shuffleKeyFile(keys: KeyFile, path: string): KeyFile {
  const list = readKeyFile(keys);
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [list[i], list[j]] = [list[j] as string, list[i] as string];
  }
  return writeKeyFile(path, list);
}

/** A call that is made again and again. */
export interface RepeatedCall {
  /** Such as `keys.verifyKey`. */
  readonly method: string;
  readonly body: object;
  readonly rootKey?: string;
}

export function oneCallScript({ method, body, rootKey }: RepeatedCall): string {
  const lines = [
    `wrk.method = "POST"`,
    `wrk.path = "/v1/${method}"`,
    `wrk.body = [[${JSON.stringify(body)}]]`,
    `wrk.headers["content-type"] = "application/json"`,
    ...(rootKey === undefined ? [] : [`wrk.headers["authorization"] = "Bearer ${rootKey}"`]),
  ];
  return `${lines.join("\n")}\n`;
}

/** `closing`: on a new connection each time. */
export function oneKeyScript(key: string, closing = false): string {
  const script = oneCallScript({ method: "keys.verifyKey", body: { key } });
  return closing ? `${script}\nwrk.headers["connection"] = "close"\n` : script;
}

/** A request of an end user to an API behind a proxy. */
export function guardedScript(key: string): string {
  return `wrk.path = "/"\nwrk.headers["authorization"] = "Bearer ${key}"\n`;
}

/** Of a load that has each key verified once. */
export const connectionsMax = 128;

/** Puts each request together by hand: `wrk.format` would take longer than everything else that the load does. */
export function manyKeysScript(port: number, keys: KeyFile, order: "in turn" | "random" | "once"): string {
  const [before, after] = JSON.stringify({ key: "|" }).split("|") as [string, string];
  const head = [
    "POST /v1/keys.verifyKey HTTP/1.1",
    `Host: 127.0.0.1:${port}`,
    "content-type: application/json",
    `Content-Length: ${before.length + keys.keyLength + after.length}`,
  ].join("\\r\\n");
  const next = { "in turn": "(at + 1) % count", random: "math.random(count) - 1", once: "at + 1" }[order];
  // The first ones again until all others are answered: the program ends without waiting for answers.
  const step = order === "once" ? `if at == count + ${10 * connectionsMax} then os.exit(0) end` : "";
  return `
local count, length = ${keys.count}, ${keys.keyLength}
local head = "${head}\\r\\n\\r\\n" .. [[${before}]]
local keys
local at = -1
function init()
  local file = assert(io.open("${keys.path}", "rb"))
  keys = file:read("*a")
  file:close()
  -- Otherwise every round would ask for the same ones.
  math.randomseed(os.time())
end
function request()
  at = ${next}
  ${step}
  local key = at % count
  return head .. keys:sub(key * length + 1, (key + 1) * length) .. [[${after}]]
end
`;
}
