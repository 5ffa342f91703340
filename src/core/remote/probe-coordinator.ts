import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { LinkRequestSchema, LinkResponseSchema } from "../../../gen/latchkey/core/v2/core_pb.js";
import { GrpcStream } from "../../link/grpc-stream.ts";
import { type LinkCredentials, linkStreamOptions } from "./link-credentials.ts";

/** `reason` is a code of the system, of gRPC or of HTTP, never what was sent. */
export type CoordinatorState =
  | { readonly outcome: "answered"; readonly pathMs: number; readonly ledgerAway: boolean; readonly stopping: boolean }
  | { readonly outcome: "failed"; readonly reason: string };

/**
 * Opens a stream as an edge does, waits until the coordinator has measured the path, and leaves. It asks for nothing, so
 * nothing is charged. Never rejects.
 */
export function probeCoordinator(
  address: string,
  credentials: LinkCredentials,
  timeoutMs: number,
): Promise<CoordinatorState> {
  return new Promise((resolve) => {
    const finish = (state: CoordinatorState) => {
      clearTimeout(timer);
      stream.reset();
      resolve(state);
    };
    const timer = setTimeout(() => finish({ outcome: "failed", reason: "no answer in time" }), timeoutMs);
    let isFirst = true;
    const stream: GrpcStream = new GrpcStream({
      ...linkStreamOptions(address, credentials),
      firstAddress: 0,
      onMessage(bytes) {
        try {
          const { timeMs, pathMs, ledgerAway, stopping } = fromBinary(LinkResponseSchema, bytes);
          // As a link does: the coordinator measures the path by the age of what its edge has seen.
          if (isFirst) {
            const seen = create(LinkRequestSchema, { seenTimeMs: timeMs, seenAgeMs: 0 });
            stream.write(toBinary(LinkRequestSchema, seen));
          }
          isFirst = false;
          if (pathMs > 0 || ledgerAway || stopping) finish({ outcome: "answered", pathMs, ledgerAway, stopping });
        } catch {
          finish({ outcome: "failed", reason: "a message that cannot be read" });
        }
      },
      onDrain() {},
      onClose: (reason) => finish({ outcome: "failed", reason }),
    });
  });
}
