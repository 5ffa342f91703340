import { afterAll, beforeAll, expect, type TestContext } from "vitest";
import { startTestServer, type TestServer } from "../support/in-process-server.ts";
import { runningTest } from "../support/test-end.ts";

/** One server for all tests of a file, or of the `describe` that this is called in. */
export function shareServer(...options: Parameters<typeof startTestServer>): () => TestServer {
  let server: TestServer | undefined;
  const ends: (() => unknown)[] = [];
  beforeAll(async () => {
    const whole = { onTestFinished: (end: () => unknown) => void ends.push(end) } as unknown as TestContext;
    server = await runningTest.run(whole, () => startTestServer(...options));
  });
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return () => server ?? expect.fail("the server starts before the first test");
}
