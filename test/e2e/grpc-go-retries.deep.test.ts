import { execFile, execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { Code } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import { isExecutable, pathFolders } from "../support/debian-programs.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { hasPostgres } from "../support/test-database.ts";
import {
  attemptsMax,
  serviceConfig,
  startForgetfulProxy,
  startWithLostReplies,
  startWithoutDatabase,
} from "./unavailable-services.ts";

const sources = join(import.meta.dirname, "grpc-go");
const go = pathFolders()
  .map((folder) => join(folder, "go"))
  .find(isExecutable);

/** Debian's Go is too old for grpc-go, so none is installed. Without a network its modules may be missing. */
const canBuild = go !== undefined && spawnSync(go, ["mod", "download"], { cwd: sources }).status === 0;

describe.runIf(hasPostgres && canBuild)("grpc-go with a retry policy", { retry: 0 }, () => {
  const ends: (() => void)[] = [];
  let program: string;

  beforeAll(() => {
    program = join(
      tempFolder((end) => ends.push(end)),
      "verify",
    );
    execFileSync(go as string, ["build", "-o", program, "."], { cwd: sources, stdio: "pipe" });
    return () => ends.forEach((end) => void end());
  });

  async function verify(port: number, key: string): Promise<{ code: Code; attempts: number }> {
    const { stdout } = await promisify(execFile)(program, [`127.0.0.1:${port}`, key, serviceConfig]);
    return JSON.parse(stdout);
  }

  it("repeats a call after which nothing was taken", async () => {
    const { port, calls } = await startWithoutDatabase();
    const outcome = await verify(port, "key_7Jd8XWkYhAqT3vRz0LmNpBsC5eFgHiUo");
    expect(outcome).toEqual({ code: Code.Unavailable, attempts: attemptsMax });
    expect(await calls()).toBe(attemptsMax);
  });

  it("does not repeat one that may have been charged, and is charged once at most", async () => {
    const service = await startWithLostReplies();
    const before = await service.calls();
    service.isLosing = true;
    expect(await verify(service.port, service.key)).toEqual({ code: Code.Unavailable, attempts: 1 });
    expect((await service.calls()) - before).toBe(1);
    service.isLosing = false;
    // One use of its own, and one at most of the call that failed.
    expect([97, 98]).toContain(await service.remainingAfterUse());
  });

  it("control: would repeat it and be charged twice if the answer did not forbid it", async () => {
    const service = await startWithLostReplies();
    let attempts = 0;
    const port = await startForgetfulProxy(service.port, () => {
      attempts++;
      // The database is back when the client repeats its call.
      if (attempts === 2) service.isLosing = false;
    });
    service.isLosing = true;
    expect(await verify(port, service.key)).toEqual({ code: 0, attempts: 2 });
    expect(await service.remainingAfterUse()).toBe(96);
  });
});
