// In a clone: npm run example web. Elsewhere it needs @latchkey/client (docs/quickstart.md).
// A handler of Request and Response, as a route of Next.js, a Worker, Deno and Bun have it.
import { createClient } from "@latchkey/client";
import { protect } from "@latchkey/client/web";
import { serve } from "./serve-fetch.mjs";

const client = createClient({ baseUrl: process.env.LATCHKEY_URL ?? "http://127.0.0.1:8080", apiId: "weather" });

const forecast = protect(client, {}, (_request, key) => Response.json({ forecast: "sunny", for: key.ownerId }));

// This one costs 10 uses, and needs a permission.
const archive = protect(client, { permissions: "archive.read", remaining: { cost: 10 } }, (_request, key) =>
  Response.json({ left: key.remaining }),
);

serve((request) => (new URL(request.url).pathname === "/archive" ? archive(request) : forecast(request)));
