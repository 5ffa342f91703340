import { createClient } from "../../sdk/client.ts";
import { isLatchkeyError } from "../../sdk/errors.ts";
import { UsageError } from "./command-error.ts";
import { type Connection, proposeUrl } from "./connection.ts";
import { explainFailure } from "./explain-failure.ts";
import type { CliCommand, CommandGroup } from "./groups.ts";
import type { CommandLine } from "./parse-command-line.ts";
import type { JsonMessage } from "./set-field.ts";

type CallOptions = Pick<CommandLine, "timeoutMs" | "idempotencyKey">;

/**
 * Calls the method of a command. Fails with a `CommandError`. Of a list that is sent in pieces, `sentBefore` is how many
 * elements were in the pieces before.
 */
export type MethodCall = (request: JsonMessage, sentBefore?: number) => Promise<JsonMessage>;

/** What calls of one command have in common. They repeat what is safe to repeat, as the client for programs does. */
export function openCall(
  group: CommandGroup,
  command: CliCommand,
  connection: Connection,
  { timeoutMs, idempotencyKey }: CallOptions,
): MethodCall {
  const method = methodOf(group, command, connection);
  if (connection.rootKey === undefined && !command.isPublic) throw new UsageError(connection.aboutRootKey);
  return async (request, sentBefore = 0) => {
    try {
      const answer = (await method(request, { timeoutMs, idempotencyKey })) as JsonMessage & {
        degraded?: true;
        cause?: unknown;
      };
      // The client turns an outage into a refusal. Here it is an error.
      if (answer.degraded) throw answer.cause;
      return answer;
    } catch (error) {
      throw isLatchkeyError(error)
        ? explainFailure(error, command, connection, sentBefore)
        : asUsageError(error, connection.url);
    }
  };
}

type Method = (request: object, options: CallOptions) => Promise<object>;

function methodOf({ client }: CommandGroup, { method }: CliCommand, { url, rootKey }: Connection): Method {
  try {
    const calls = createClient({ baseUrl: url, rootKey }) as unknown as Record<string, Record<string, Method>>;
    return calls[client]?.[method] as Method;
  } catch (error) {
    throw asUsageError(error, url);
  }
}

/** What the client refuses before it sends anything, in words that name its options. */
function asUsageError(error: unknown, url: string): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return error;
  const names = { baseUrl: "the URL of the service", rootKey: "the root key", idempotencyKey: "--idempotency-key" };
  const message = error.message.replace(/^\w+/, (name) => (names as Record<string, string>)[name] ?? name);
  return new UsageError(error.message.startsWith("baseUrl") ? message + proposeUrl(url) : message);
}

/** The items of all pages from this request on. */
export async function* itemsOf(call: MethodCall, items: string, request: JsonMessage): AsyncGenerator<JsonMessage> {
  for (let next = request; ; ) {
    const { cursor, ...page } = await call(next);
    yield* page[items] as JsonMessage[];
    if (cursor === undefined) return;
    next = { ...request, cursor };
  }
}
