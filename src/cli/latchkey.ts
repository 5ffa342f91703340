#!/usr/bin/env node
// Checks the Node version before importing anything that an older version does not have.
const major = Number(process.versions.node.split(".", 1)[0]);
if (major < 24) {
  console.error(`latchkey needs Node.js 24 or newer; this is ${process.version}.`);
  console.error(
    "`npm install node@24` in the same folder brings one along: for `npx latchkey`, or with PATH=$PWD/node_modules/.bin:$PATH.",
  );
  process.exit(1);
}
const { keepTickShape } = await import("../ambient/keep-tick-shape.ts");
keepTickShape();
// Before the imports that it caches.
const { enableCompileCache } = await import("./compile-cache.ts");
enableCompileCache(process.env);
const { main } = await import("./main.ts");
await main(process.argv.slice(2));
