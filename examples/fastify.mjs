// In a clone: npm run example fastify. Elsewhere it needs @latchkey/client (docs/quickstart.md) and fastify.
import { createClient } from "@latchkey/client";
import { protect } from "@latchkey/client/fastify";
import fastify from "fastify";

const client = createClient({ baseUrl: process.env.LATCHKEY_URL ?? "http://127.0.0.1:8080", apiId: "weather" });
const app = fastify();

app.get("/forecast", { onRequest: protect(client) }, async (request) => {
  return { forecast: "sunny", for: request.latchkey.ownerId };
});

// This one costs 10 uses, and needs a permission.
const onRequest = protect(client, { permissions: "archive.read", remaining: { cost: 10 } });
app.get("/archive", { onRequest }, async (request) => ({ left: request.latchkey.remaining }));

const address = await app.listen({ port: Number(process.env.EXAMPLE_PORT ?? 3000), host: "127.0.0.1" });
console.log(`listening on ${address}`);
