import { MessageChannel } from "node:worker_threads";
import { createMainThreadMethods, type MainThread } from "../../src/threads/main-thread-methods.ts";
import type { MainThreadMethods, ServingMethods } from "../../src/threads/methods.ts";
import type { MainThreadLink } from "../../src/threads/remote-main-thread.ts";
import { ThreadLink } from "../../src/threads/thread-link.ts";

/** Both ends of the link between threads, over a real channel in this thread. The main thread has only these services. */
export function connectThreads(services: Partial<MainThread>): { readonly serving: MainThreadLink; close(): void } {
  const { port1, port2 } = new MessageChannel();
  const mainThread = new ThreadLink<MainThreadMethods, ServingMethods>(
    port1,
    createMainThreadMethods(services as MainThread, 1),
  );
  const serving: MainThreadLink = new ThreadLink<ServingMethods, MainThreadMethods>(port2, {} as ServingMethods);
  port1.on("message", (batch) => mainThread.onMessage(batch));
  port2.on("message", (batch) => serving.onMessage(batch));
  return { serving, close: () => port1.close() };
}
