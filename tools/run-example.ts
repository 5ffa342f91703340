// `npm run example express`: runs an example of this folder on the sources, where the package @latchkey/client is not installed.
import { readdirSync } from "node:fs";
import { registerHooks } from "node:module";
import { clientEntryPoints } from "./build-client.ts";

const [name = ""] = process.argv.slice(2);
const names = readdirSync(new URL("../examples", import.meta.url)).flatMap(
  (file) => file.match(/^(.+)\.mjs$/)?.[1] ?? [],
);
if (!names.includes(name)) {
  console.error(`npm run example NAME, where NAME is one of: ${names.join(", ")}`);
  process.exit(2);
}
const clientName = "@latchkey/client";

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== clientName && !specifier.startsWith(`${clientName}/`)) return next(specifier, context);
    const entry = specifier.slice(clientName.length + 1) || "index";
    const path = clientEntryPoints[entry as keyof typeof clientEntryPoints];
    return next(new URL(`../${path}`, import.meta.url).href, context);
  },
});

await import(new URL(`../examples/${name}.mjs`, import.meta.url).href);
