// In a clone: npm run example express. Elsewhere it needs @latchkey/client (docs/quickstart.md) and express.
import { createClient } from "@latchkey/client";
import { protect } from "@latchkey/client/express";
import express from "express";

const client = createClient({ baseUrl: process.env.LATCHKEY_URL ?? "http://127.0.0.1:8080", apiId: "weather" });
const app = express();

app.get("/forecast", protect(client), (request, response) => {
  response.json({ forecast: "sunny", for: request.latchkey.ownerId });
});

// This one costs 10 uses, and needs a permission.
app.get("/archive", protect(client, { permissions: "archive.read", remaining: { cost: 10 } }), (request, response) => {
  response.json({ left: request.latchkey.remaining });
});

const server = app.listen(Number(process.env.EXAMPLE_PORT ?? 3000), "127.0.0.1", (error) => {
  if (error) throw error;
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
