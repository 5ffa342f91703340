import { type IdempotentCallOptions, type LatchkeyClient, methods } from "../../gen/latchkey/v1/client.ts";
import { withDeadline } from "../../src/sdk/client.ts";
import { openTransport, type Target, type TransportOptions } from "../../src/sdk/transport.ts";

/**
 * The client without what it does for its users: each call is one request, and whatever goes wrong is thrown. So a test
 * counts what was sent, and takes no outage for a refusal.
 */
export function rawClient(options: TransportOptions & { readonly timeoutMs?: number }): LatchkeyClient {
  const transport = openTransport(options);
  const callOf = (target: Target) => {
    return async (request: object, call: IdempotentCallOptions = {}) => {
      const prepared = transport.prepare(target, request, call.idempotencyKey);
      const timeoutMs = call.timeoutMs ?? options.timeoutMs ?? 10_000;
      return withDeadline(timeoutMs, call.signal, (signal) => transport.exchange(prepared, signal));
    };
  };
  const groups = Object.entries(methods).map(([group, table]) => {
    const calls = Object.entries(table).map(([name, target]) => [name, callOf(target)]);
    return [group, Object.fromEntries(calls)] as const;
  });
  return Object.fromEntries(groups) as unknown as LatchkeyClient;
}
