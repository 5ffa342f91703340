// Makes dist, which is what the package ships: JavaScript and declarations of src and gen, and the OpenAPI document.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");

rmSync(dist, { recursive: true, force: true });
execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
// The compiler takes TypeScript only; the generated messages are JavaScript with declarations already.
cpSync(join(root, "gen"), join(dist, "gen"), {
  recursive: true,
  filter: (path) => !path.endsWith(".ts") || path.endsWith(".d.ts"),
});
chmodSync(join(dist, "src/cli/latchkey.js"), 0o755);
