import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { findOrInstall, isExecutable, pathFolders } from "./debian-programs.ts";
import { signal } from "./local-server.ts";
import { tempFolder } from "./temp-folder.ts";
import { atTestEnd } from "./test-end.ts";

/** A message of the DevTools protocol: https://chromedevtools.github.io/devtools-protocol */
interface DevToolsMessage {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly params?: object;
  readonly result?: object;
  readonly error?: { readonly message: string };
}

export interface PageRequest {
  readonly method: string;
  readonly url: string;
}

/** Debian's Chromium without a window. */
export class Browser {
  readonly #devTools: DevTools;

  private constructor(devTools: DevTools) {
    this.#devTools = devTools;
  }

  /** With a profile of its own. It ends with the test, unless told otherwise. */
  static start(atEnd: (undo: () => unknown) => void = atTestEnd): Browser {
    const profile = tempFolder(atEnd);
    const options = [
      "--headless",
      "--remote-debugging-pipe",
      `--user-data-dir=${profile}`,
      "--no-first-run",
      "--window-size=1280,800",
      "--disable-gpu",
      // Containers have little shared memory.
      "--disable-dev-shm-usage",
      // It asks for nothing by itself, and finds no machine but this one.
      "--disable-background-networking",
      "--disable-component-update",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
      // As root there is no sandbox. The pages are those of the tests.
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    ];
    const child = spawn(chromiumBinary(), options, {
      env: { PATH: process.env.PATH, HOME: profile, TMPDIR: profile },
      stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
      // A group of its own, so that all of its processes can be ended together.
      detached: true,
    });
    const ended = once(child, "close");
    atEnd(async () => {
      if (child.pid !== undefined) signal(-child.pid, "SIGKILL");
      await ended;
    });
    const [, , stderr, input, output] = child.stdio as unknown as [null, null, Readable, Writable, Readable];
    let log = "";
    stderr.on("data", (chunk) => {
      log = (log + chunk).slice(-20_000);
    });
    const devTools = new DevTools(input, output);
    child.on("error", (error) => devTools.end(error));
    child.on("close", () => devTools.end(new Error(`Chromium has ended:\n${log}`)));
    return new Browser(devTools);
  }

  /** Resolves when the page and all that it asks for are loaded. */
  async openPage(url: string): Promise<Page> {
    const { targetId } = await this.#devTools.call<{ targetId: string }>("Target.createTarget", { url: "about:blank" });
    const attach = { targetId, flatten: true };
    const { sessionId } = await this.#devTools.call<{ sessionId: string }>("Target.attachToTarget", attach);
    const page = new Page(this.#devTools, sessionId);
    await page.open(url);
    return page;
  }
}

class Page {
  /** What a developer sees in red: errors of the console, exceptions, violations of policies, requests that failed. */
  readonly problems: string[] = [];
  /** What was sent, preflights of CORS included. */
  readonly requests: PageRequest[] = [];
  readonly #devTools: DevTools;
  readonly #sessionId: string;
  readonly #loaded = Promise.withResolvers<void>();

  constructor(devTools: DevTools, sessionId: string) {
    this.#devTools = devTools;
    this.#sessionId = sessionId;
    devTools.on(sessionId, ({ method = "", params = {} }: DevToolsMessage) =>
      this.#onEvent(method, params as EventParams),
    );
  }

  async open(url: string): Promise<void> {
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await this.#call(`${domain}.enable`);
    const { errorText } = await this.#call<{ errorText?: string }>("Page.navigate", { url });
    if (errorText !== undefined) throw new Error(`${url} cannot be opened: ${errorText}`);
    await this.#loaded.promise;
  }

  /** What an expression in JavaScript is, or what its promise resolves to. Throws what it throws. */
  async evaluate<T>(expression: string): Promise<T> {
    const params = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#call<Evaluated<T>>("Runtime.evaluate", params);
    if (exceptionDetails !== undefined) throw new Error(describeException(exceptionDetails));
    return result.value;
  }

  async close(): Promise<void> {
    await this.#call("Page.close");
  }

  #call<Result>(method: string, params: object = {}): Promise<Result> {
    return this.#devTools.call(method, params, this.#sessionId);
  }

  #onEvent(method: string, params: EventParams): void {
    if (method === "Page.loadEventFired") this.#loaded.resolve();
    if (method === "Network.requestWillBeSent") this.requests.push(params.request);
    if (method === "Runtime.exceptionThrown") this.problems.push(describeException(params.exceptionDetails));
    if (method === "Log.entryAdded" && params.entry.level === "error") this.problems.push(params.entry.text);
    if (method === "Runtime.consoleAPICalled" && params.type === "error") {
      this.problems.push(params.args.map(({ value, description }) => description ?? String(value)).join(" "));
    }
  }
}

/** What the events above have; each has only some of it. */
interface EventParams {
  readonly request: PageRequest;
  readonly exceptionDetails: ExceptionDetails;
  readonly entry: { readonly level: string; readonly text: string };
  readonly type: string;
  readonly args: readonly { readonly value?: unknown; readonly description?: string }[];
}

interface Evaluated<T> {
  readonly result: { readonly value: T };
  readonly exceptionDetails?: ExceptionDetails;
}

interface ExceptionDetails {
  readonly text: string;
  readonly exception?: { readonly description?: string };
}

function describeException({ text, exception }: ExceptionDetails): string {
  return exception?.description ?? text;
}

/** Calls the browser and emits what it tells, by session. Each message is JSON and ends with a NUL. */
class DevTools extends EventEmitter {
  readonly #input: Writable;
  readonly #calls = new Map<number, { resolve(result: object): void; reject(error: Error): void }>();
  #ended: Error | undefined;
  #lastId = 0;

  constructor(input: Writable, output: Readable) {
    super();
    this.#input = input;
    input.on("error", (error) => this.end(error));
    let rest = "";
    output.setEncoding("utf8").on("data", (chunk: string) => {
      const messages = (rest + chunk).split("\0");
      rest = messages.pop() ?? "";
      for (const message of messages) this.#onMessage(JSON.parse(message) as DevToolsMessage);
    });
  }

  call<Result>(method: string, params: object, sessionId?: string): Promise<Result> {
    const id = ++this.#lastId;
    return new Promise<object>((resolve, reject) => {
      if (this.#ended !== undefined) return reject(this.#ended);
      this.#calls.set(id, { resolve, reject });
      this.#input.write(`${JSON.stringify({ id, sessionId, method, params })}\0`);
    }) as Promise<Result>;
  }

  /** Fails all calls that wait, and those to come. */
  end(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }

  #onMessage(message: DevToolsMessage): void {
    const { id, sessionId, error, result = {} } = message;
    if (id === undefined) {
      if (sessionId !== undefined) this.emit(sessionId, message);
      return;
    }
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error === undefined) call?.resolve(result);
    else call?.reject(new Error(error.message));
  }
}

function chromiumBinary(): string {
  const find = () =>
    pathFolders()
      .map((folder) => join(folder, "chromium"))
      .find(isExecutable);
  return findOrInstall({ name: "Chromium", debianPackage: "chromium", find });
}
