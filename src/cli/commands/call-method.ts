import type { Command, CommandGroup } from "../../../gen/latchkey/v1/commands.ts";
import { createClient } from "../../sdk/client.ts";
import { isLatchkeyError, type LatchkeyError } from "../../sdk/errors.ts";
import { CommandError, exitCodes, UsageError } from "./command-error.ts";
import type { Connection } from "./connection.ts";
import { printable } from "./screen.ts";
import type { Json } from "./set-field.ts";

interface CallOptions {
  readonly timeoutMs: number;
  readonly idempotencyKey: string | undefined;
}

/** Calls the method of a command. Fails with a `CommandError`. */
export type Call = (request: Json) => Promise<Json>;

/** What calls of one command have in common. They repeat what is safe to repeat, as the client for programs does. */
export function openCall(
  group: CommandGroup,
  command: Command,
  connection: Connection,
  { timeoutMs, idempotencyKey }: CallOptions,
): Call {
  const method = methodOf(group, command, connection);
  if (connection.rootKey === undefined && !command.isPublic) {
    throw new UsageError(connection.aboutRootKey);
  }
  return async (request) => {
    try {
      const answer = (await method(request, { timeoutMs, idempotencyKey })) as Json & {
        degraded?: true;
        cause?: unknown;
      };
      // The client turns an outage into a refusal. Here it is an error.
      if (answer.degraded) throw answer.cause;
      return answer;
    } catch (error) {
      throw isLatchkeyError(error) ? asCommandError(error, connection) : asUsageError(error);
    }
  };
}

type Method = (request: object, options: CallOptions) => Promise<object>;

function methodOf({ client }: CommandGroup, { method }: Command, { url, rootKey }: Connection): Method {
  try {
    const calls = createClient({ baseUrl: url, rootKey }) as unknown as Record<string, Record<string, Method>>;
    return calls[client]?.[method] as Method;
  } catch (error) {
    throw asUsageError(error);
  }
}

/** What the client refuses before it sends anything, in words that name its options. */
function asUsageError(error: unknown): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return error;
  const names = { baseUrl: "the URL of the service", rootKey: "the root key", idempotencyKey: "--idempotency-key" };
  return new UsageError(error.message.replace(/^\w+/, (name) => (names as Record<string, string>)[name] ?? name));
}

/** The answer of all pages from this request on, as if they were one. */
export async function callAllPages(call: Call, items: string, request: Json): Promise<Json> {
  const found: unknown[] = [];
  for (let next = request; ; ) {
    const { cursor, ...page } = await call(next);
    found.push(...(page[items] as unknown[]));
    if (cursor === undefined) return { ...page, [items]: found };
    next = { ...request, cursor };
  }
}

function asCommandError(error: LatchkeyError, { url, aboutRootKey }: Connection): CommandError {
  const lines = [`${error.code}: ${explain(error, url)}`];
  const untold = error.violations.filter(({ message }) => !error.message.includes(message));
  for (const { path, message } of untold) lines.push(`  ${path === "" ? "the request" : path}: ${message}`);
  if (error.code === "UNAUTHORIZED") lines.push(aboutRootKey);
  if (error.requestId !== undefined) lines.push(`request ${error.requestId}`);
  return new CommandError(lines.map(printable).join("\n"), error.retryable ? exitCodes.unavailable : exitCodes.refused);
}

function explain(error: LatchkeyError, url: string): string {
  if (error.code !== "NETWORK_ERROR") return error.message;
  const { code } = (error.cause as { cause?: { code?: string } } | undefined)?.cause ?? {};
  return `the service could not be reached at ${url}${code === undefined ? "" : ` (${code})`}`;
}
