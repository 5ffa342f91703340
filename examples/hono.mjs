// In a clone: npm run example hono. Elsewhere it needs @latchkey/client (docs/quickstart.md) and hono.
import { createClient } from "@latchkey/client";
import { protect } from "@latchkey/client/hono";
import { Hono } from "hono";
import { serve } from "./serve-fetch.mjs";

const client = createClient({ baseUrl: process.env.LATCHKEY_URL ?? "http://127.0.0.1:8080", apiId: "weather" });
const app = new Hono();

app.get("/forecast", protect(client), (context) => {
  return context.json({ forecast: "sunny", for: context.get("latchkey").ownerId });
});

// This one costs 10 uses, and needs a permission.
app.get("/archive", protect(client, { permissions: "archive.read", remaining: { cost: 10 } }), (context) => {
  return context.json({ left: context.get("latchkey").remaining });
});

serve(app.fetch);
