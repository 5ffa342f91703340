// `npm run example express`: runs an example of this folder on the sources, where the package @latchkey/client is not installed.
import { readdirSync } from "node:fs";
import { registerHooks } from "node:module";
import { clientEntryPoints } from "./build-client.ts";

const [name = ""] = process.argv.slice(2);
/** Files that examples share. */
const helpers = ["serve-fetch", "weather-service"];
const names = readdirSync(new URL("../examples", import.meta.url))
  .flatMap((file) => file.match(/^(.+)\.mjs$/)?.[1] ?? [])
  .filter((each) => !helpers.includes(each));
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

const { LATCHKEY_URL = "http://127.0.0.1:8080", EXAMPLE_PORT = "3000" } = process.env;
const path =
  name === "connect" ? "weather.v1.Weather/Forecast -H 'Content-Type: application/json' -d '{}'" : "forecast";
console.log(`This example asks the service at ${LATCHKEY_URL} (LATCHKEY_URL) about keys of the API weather. For a key:
  npx latchkey keys create --url ${LATCHKEY_URL} --api-id weather --owner-id ada --remaining 100 -o key
To use it (EXAMPLE_PORT sets another port):
  curl -H 'Authorization: Bearer KEY' http://127.0.0.1:${EXAMPLE_PORT}/${path}`);

await import(new URL(`../examples/${name}.mjs`, import.meta.url).href);
