import type { DescMethod } from "@bufbuild/protobuf";
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
  const open = { permission: "health.read", isPublic: true, isManagement: false, isRead: true, isIdempotent: false };
  const endpoint = (method: DescMethod, handle: Endpoint["handle"]) =>
    ({ method, name: nameOf(method), ...open, handle }) as Endpoint;

  const check = endpoint(Health.method.check, async (request) => {
    const { service } = request as HealthCheckRequest;
    if (!known.has(service)) throw new ApiError("NOT_FOUND", "there is no such service");
    return { status: status() };
  });

  const list = endpoint(Health.method.list, async () => {
    return { statuses: Object.fromEntries([...known].map((name) => [name, { status: status() }])) };
  });

  /** For the protocols that `createHealthWatch` does not serve itself. A watch of an unknown service ends at a change. */
  function addWatch(router: ConnectRouter): void {
    router.rpc(Health.method.watch, async function* watch({ service }, { signal }) {
      while (!signal.aborted) {
        yield { status: statusOf(service) };
        await readiness.changed(signal);
        if (!known.has(service)) return;
      }
    });
  }

  return { endpoints: [check, list], addWatch, statusOf };
}
