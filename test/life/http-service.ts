import { createHash } from "node:crypto";
import http from "node:http";
import { rawClient } from "../support/raw-client.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";
import type { Answer, Call, Kind, LoggedEvent, Operation } from "./operations.ts";
import { type RunOptions, runCallers, type Service, type ServiceCall } from "./run-callers.ts";

const apiId = "life";

const kinds: readonly Kind[] = [
  "createKey",
  "importKeys",
  "verifyKey",
  "getKey",
  "listKeys",
  "updateKey",
  "updateRemaining",
  "rerollKey",
  "deleteKey",
];

interface RootKey {
  readonly rootKeyId: string;
  readonly rootKey: string;
}

/** The service itself, over JSON. Every caller has a connection of its own to each replica. */
export class HttpService implements Service {
  readonly kinds = kinds;
  readonly #baseUrls: readonly string[];
  /** One for each third of the callers. */
  readonly #rootKeys: readonly RootKey[];
  readonly #agents = new Map<string, http.Agent>();
  /** Answers that no operation of a run should get. */
  readonly unexpected: string[] = [];

  private constructor(baseUrls: readonly string[], rootKeys: readonly RootKey[]) {
    this.#baseUrls = baseUrls;
    this.#rootKeys = rootKeys;
    atTestEnd(() => {
      for (const agent of this.#agents.values()) agent.destroy();
    });
  }

  /** The callers share three root keys: the configured one, one that was made, and one that is limited to the API. */
  static async of(baseUrls: readonly string[]): Promise<HttpService> {
    const { apis, rootKeys } = rawClient({ baseUrl: baseUrls[0] as string, rootKey: testRootKey });
    await apis.createApi({ apiId });
    const permissions = ["keys.*"];
    const made = await rootKeys.createRootKey({ permissions });
    const limited = await rootKeys.createRootKey({ permissions, apiIds: [apiId] });
    return new HttpService(baseUrls, [{ rootKeyId: "configured", rootKey: testRootKey }, made, limited]);
  }

  /** The id of the root key of a caller. */
  readonly actorOf = (caller: number): string => this.#rootKeyOf(caller).rootKeyId;

  #rootKeyOf(caller: number): RootKey {
    return this.#rootKeys[caller % this.#rootKeys.length] as RootKey;
  }

  get replicas(): number {
    return this.#baseUrls.length;
  }

  nowMs(): number {
    return performance.now();
  }

  clockMs(): number {
    return Date.now();
  }

  /** All of them, as `audit.listEvents` lists them on one replica: newest first. */
  async listEvents(): Promise<LoggedEvent[]> {
    const events: LoggedEvent[] = [];
    const { audit } = rawClient({ baseUrl: this.#baseUrls[0] as string, rootKey: testRootKey });
    for (let cursor: string | undefined; ; ) {
      const page = await audit.listEvents({ limit: 100, ...(cursor !== undefined && { cursor }) });
      for (const { at: atMs, rootKeyId: actor, version = 0, fields = [], ...event } of page.events ?? []) {
        events.push({ ...event, atMs, actor, version, fields });
      }
      if (page.cursor === undefined) return events;
      cursor = page.cursor;
    }
  }

  run(options: Omit<RunOptions, "actorOf">): Promise<readonly Call[]> {
    const { actorOf } = this;
    return new Promise((resolve) => runCallers(this, { ...options, actorOf }, resolve));
  }

  call({ caller, replica, operation, leaveAfterMs }: ServiceCall, onAnswer: (answer: Answer) => void): void {
    let isOver = false;
    const answer = (given: Answer) => {
      if (isOver) return;
      isOver = true;
      onAnswer(given);
    };
    const headers = { "content-type": "application/json", authorization: `Bearer ${this.#rootKeyOf(caller).rootKey}` };
    const url = `${this.#baseUrls[replica]}/v1/keys.${operation.kind}`;
    const agent = this.#agentOf(caller, replica);
    const request = http.request(url, { method: "POST", headers, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("error", () => {}).on("end", () => answer(this.#answerOf(operation, response.statusCode ?? 0, text)));
    });
    request.on("error", ({ message }) => {
      if (leaveAfterMs === undefined) this.unexpected.push(`${operation.kind}: ${message}`);
      answer({ status: "unknown", cause: message });
    });
    request.end(JSON.stringify(bodyOf(operation)));
    if (leaveAfterMs !== undefined) setTimeout(() => request.destroy(new Error("the caller left")), leaveAfterMs);
  }

  #answerOf(operation: Operation, status: number, text: string): Answer {
    switch (status) {
      case 200: {
        const body = JSON.parse(text);
        // One key at a time: its result is the answer.
        return { status: "done", body: operation.kind === "importKeys" ? body.results[0] : body };
      }
      case 404:
        return { status: "notFound" };
      case 409:
        return { status: "conflict" };
      default:
        this.unexpected.push(`${operation.kind}: ${status} ${text}`);
        return { status: "unknown", cause: String(status) };
    }
  }

  #agentOf(caller: number, replica: number): http.Agent {
    const name = `${caller} ${replica}`;
    const agent = this.#agents.get(name) ?? new http.Agent({ keepAlive: true, maxSockets: 1 });
    this.#agents.set(name, agent);
    return agent;
  }
}

function bodyOf(operation: Operation): object {
  switch (operation.kind) {
    case "createKey":
      return { apiId, ...operation.fields, remaining: operation.remaining };
    case "importKeys": {
      const digest = createHash("sha256").update(operation.secret).digest("hex");
      return { apiId, keys: [{ digest, ...operation.fields, remaining: operation.remaining }] };
    }
    case "verifyKey":
      return { key: operation.secret };
    case "listKeys":
      return { apiId, limit: 100 };
    case "updateKey": {
      const { kind: _, changes, ...rest } = operation;
      return { ...rest, ...changes };
    }
    default: {
      const { kind: _, ...rest } = operation;
      return rest;
    }
  }
}
