import type { ConnectRouter } from "@connectrpc/connect";
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus as Status,
} from "../../gen/health/v1/health_pb.js";
import { ApiError } from "./api-error.ts";
import type { Endpoint } from "./call.ts";
import { nameOf } from "./endpoints.ts";
import type { Readiness } from "./readiness.ts";

/** `grpc.health.v1.Health` for the server as a whole (the empty name) and for each service it serves. */
export function createHealth(readiness: Readiness, serviceNames: readonly string[]) {
  const known = new Set(["", ...serviceNames]);
  const status = () => (readiness.ready ? Status.SERVING : Status.NOT_SERVING);
  const statusOf = (service: string) => (known.has(service) ? status() : Status.SERVICE_UNKNOWN);

  // The health service's proto states no permission. No root key is ever asked for this one.
  const open = {
    permission: "health.read",
    isPublic: true,
    isManagement: false,
    isRead: true,
    isIdempotent: false,
  } as const;

  const check: Endpoint = {
    method: Health.method.check,
    name: nameOf(Health.method.check),
    ...open,
    async handle(request) {
      const { service } = request as HealthCheckRequest;
      if (!known.has(service)) throw new ApiError("NOT_FOUND", "there is no such service");
      return { status: status() };
    },
  };

  const list: Endpoint = {
    method: Health.method.list,
    name: nameOf(Health.method.list),
    ...open,
    handle: async () => ({ statuses: Object.fromEntries([...known].map((name) => [name, { status: status() }])) }),
  };

  /** For the protocols that `createHealthWatch` does not serve itself. */
  function addWatch(router: ConnectRouter): void {
    router.rpc(Health.method.watch, async function* watch({ service }, { signal }) {
      if (!known.has(service)) {
        yield { status: Status.SERVICE_UNKNOWN };
        await readiness.changed(signal);
        return;
      }
      while (!signal.aborted) {
        yield { status: status() };
        await readiness.changed(signal);
      }
    });
  }

  return { endpoints: [check, list], addWatch, statusOf };
}
