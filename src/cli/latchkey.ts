#!/usr/bin/env node
// Checks the runtime before anything is imported that an older one does not have.
const major = Number(process.versions.node.split(".", 1)[0]);
if (major < 24) {
  console.error(`latchkey needs Node.js 24 or newer; this is ${process.version}.`);
  console.error("In a project of its own, `npm install node@24 latchkey` brings one along for `npx latchkey`.");
  process.exit(1);
}
// Before what it shall keep is imported.
const { enableCompileCache } = await import("./compile-cache.ts");
enableCompileCache(process.env);
const { main } = await import("./main.ts");
await main(process.argv.slice(2));
