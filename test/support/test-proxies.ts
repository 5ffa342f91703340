import { type ProxyName, proxyBinary } from "./proxy-binaries.ts";
import { type ProxyOptions, ProxyServer } from "./proxy-server.ts";
import { atTestEnd } from "./test-end.ts";
import { testRootKey } from "./test-root-key.ts";

/** Whether this run has the program, after installing it if it is missing. */
export function hasProxy(name: ProxyName): boolean {
  return proxyBinary(name) !== undefined;
}

/** A proxy of the test's own, gone when the test is. */
export async function startTestProxy(name: ProxyName, options: Omit<ProxyOptions, "rootKey">): Promise<ProxyServer> {
  const proxy = await ProxyServer.start(name, [proxyBinary(name) ?? ""], { ...options, rootKey: testRootKey });
  atTestEnd(() => proxy.remove());
  return proxy;
}
