import { Code, ConnectError, type ConnectRouter, createConnectRouter, type Interceptor } from "@connectrpc/connect";

/** Fixed messages for failed streams, by code. Connect's own messages can repeat what was sent. */
const messages = new Map<Code, string>([
  [Code.Canceled, "the stream was cancelled"],
  [Code.DeadlineExceeded, "the stream's deadline has passed"],
  [Code.ResourceExhausted, "a message of the stream is too large"],
  [Code.Unimplemented, "the stream asks for something that is not supported"],
  [Code.Unavailable, "the service is shutting down"],
]);

/** A router of Connect, with our bounds and with the fixed messages for failed streams. */
export function createShieldedRouter(readMaxBytes: number, shutdownSignal: AbortSignal): ConnectRouter {
  const jsonOptions = { alwaysEmitImplicit: true };
  const interceptors = [shieldStreams];
  return createConnectRouter({ acceptCompression: [], readMaxBytes, jsonOptions, interceptors, shutdownSignal });
}

/** Gives every failure of a streaming method a fixed message. An unknown failure is reported as a malformed message. */
const shieldStreams: Interceptor = (next) => async (request) => {
  if (!request.stream) return next(request);
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: shield(response.message) } : response;
  } catch (error) {
    throw toSafeError(error);
  }
};

async function* shield<Message>(stream: AsyncIterable<Message>): AsyncIterable<Message> {
  try {
    yield* stream;
  } catch (error) {
    throw toSafeError(error);
  }
}

function toSafeError(error: unknown): ConnectError {
  const code = error instanceof ConnectError ? error.code : Code.InvalidArgument;
  const message = messages.get(code);
  return message === undefined
    ? new ConnectError("a message of the stream could not be read", Code.InvalidArgument)
    : new ConnectError(message, code);
}
