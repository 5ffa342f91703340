#!/usr/bin/env node
// Checks the runtime before anything is imported that an older one does not have.
import module from "node:module";

const major = Number(process.versions.node.split(".", 1)[0]);
if (major < 24) {
  console.error(`latchkey needs Node.js 24 or newer; this is ${process.version}.`);
  console.error("In a project of its own, `npm install node@24 latchkey` brings one along for `npx latchkey`.");
  process.exit(1);
}
// Keeps compiled code between starts, so that later ones are quicker than the first.
module.enableCompileCache();
const { main } = await import("./main.ts");
await main(process.argv.slice(2));
