/** A request of Node's HTTP/1.1 or HTTP/2, or an HTTP/2 session. */
export interface OverSocket {
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** The address at the other end of the connection itself, never of a header. Undefined once the connection is closed. */
export function remoteAddressOf(source: OverSocket | undefined): string | undefined {
  try {
    return source?.socket.remoteAddress;
  } catch {
    // Node throws for the socket of a session that has ended.
    return undefined;
  }
}
