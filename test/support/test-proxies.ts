import { inject } from "vitest";
import type { ProxyName } from "./proxy-binaries.ts";
import { type ProxyOptions, ProxyServer } from "./proxy-server.ts";
import { atTestEnd } from "./test-end.ts";
import { testRootKey } from "./test-root-key.ts";

/** Whether this run has the program. */
export function hasProxy(name: ProxyName): boolean {
  return inject("proxies")[name] !== undefined;
}

/** A proxy of the test's own, gone when the test is. */
export async function startTestProxy(name: ProxyName, options: Omit<ProxyOptions, "rootKey">): Promise<ProxyServer> {
  const proxy = await ProxyServer.start(name, [inject("proxies")[name] ?? ""], { ...options, rootKey: testRootKey });
  atTestEnd(() => proxy.remove());
  return proxy;
}
