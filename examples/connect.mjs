// In a clone: npm run example connect. Elsewhere it needs @latchkey/client (docs/quickstart.md) and @connectrpc/connect, @connectrpc/connect-node, @bufbuild/protobuf.
import { createServer } from "node:http";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createClient } from "@latchkey/client";
import { latchkey, protect } from "@latchkey/client/connect";
import { Weather } from "./weather-service.mjs";

const client = createClient({ baseUrl: process.env.LATCHKEY_URL ?? "http://127.0.0.1:8080", apiId: "weather" });

// What a method asks for besides a valid key: this one costs 10 uses, and needs a permission.
const asked = { Archive: { permissions: "archive.read", remaining: { cost: 10 } } };
const interceptors = [protect(client, { perRequest: ({ method }) => asked[method.name] ?? {} })];

const text = (value) => ({ fields: { value: { kind: { case: "stringValue", value } } } });
const weather = {
  forecast: (_, { values }) => text(`sunny for ${values.get(latchkey).ownerId}`),
  archive: (_, { values }) => text(`${values.get(latchkey).remaining} left`),
};
const routes = (router) => router.service(Weather, weather);
const server = createServer(connectNodeAdapter({ routes, interceptors }));
server.listen(Number(process.env.EXAMPLE_PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
