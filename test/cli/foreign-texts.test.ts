import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

/** Clears the screen and sets the title of a terminal that obeys it. */
const control = "\u001b[2J\u001b]0;title\u0007";
const escaped = "\\u001b[2J\\u001b]0;title\\u0007";

async function startService(answer: object): Promise<Record<string, string>> {
  const server = createServer((_, res) => {
    res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  atTestEnd(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return { LATCHKEY_URL: `http://127.0.0.1:${port}`, LATCHKEY_ROOT_KEY: testRootKey };
}

describe.concurrent("what others have written does not control the terminal:", () => {
  it("the cursor of a service", async () => {
    const { stderr } = await runLatchkey(["apis", "list"], await startService({ apis: [], cursor: control }));
    expect(stderr).toContain(`--cursor ${escaped} `);
    expect(stderr).not.toContain("\u001b");
  });

  it("what is deleted, from a file", async () => {
    const file = join(tempFolder(), "data.json");
    writeFileSync(file, JSON.stringify({ keyId: control }));
    const args = ["keys", "delete", "--data", `@${file}`, "--yes"];
    expect(await runLatchkey(args, await startService({}))).toMatchObject({ code: 0, stdout: `deleted ${escaped}\n` });
  });

  it("names of files in a diagnosis", async () => {
    const folder = join(tempFolder(), control);
    writeFileSync(folder, "");
    const { stdout } = await runLatchkey(["doctor"], { LATCHKEY_DATA_DIR: folder });
    expect(stdout).toContain(`${escaped} cannot be made`);
    expect(stdout).not.toContain("\u001b");
  });
});
