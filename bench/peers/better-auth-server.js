// better-auth's API keys with a counter, verified from fastify: `node better-auth-server.js <database URL> <number of keys>
// <file>` writes the keys to the file and prints its port.
import { writeFileSync } from "node:fs";
import { apiKey } from "@better-auth/api-key";
import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import fastify from "fastify";
import pg from "pg";

const [databaseUrl, count, keysFile] = process.argv.slice(2);
const remaining = 2_147_483_647;

const auth = betterAuth({
  database: new pg.Pool({ connectionString: databaseUrl, max: 20, idleTimeoutMillis: 0 }),
  secret: "secret-of-the-bench-0123456789abcdef",
  baseURL: "http://127.0.0.1",
  emailAndPassword: { enabled: true },
  telemetry: { enabled: false },
  logger: { disabled: true },
  // Limits are not what is compared. What may be done after the answer, is.
  rateLimit: { enabled: false },
  plugins: [apiKey({ rateLimit: { enabled: false }, deferUpdates: true })],
  advanced: { backgroundTasks: { handler: (task) => void task } },
});
await (await getMigrations(auth.options)).runMigrations();

const { user } = await auth.api.signUpEmail({
  body: { name: "bench", email: "bench@example.com", password: "password-of-the-bench" },
});
const created = Array.from({ length: Number(count) }, () =>
  auth.api.createApiKey({ body: { userId: user.id, prefix: "live_", remaining } }),
);
writeFileSync(keysFile, JSON.stringify((await Promise.all(created)).map(({ key }) => key)));

const app = fastify({ logger: false });
app.post("/v1/keys.verifyKey", async (request) => {
  const { valid, key, error } = await auth.api.verifyApiKey({ body: { key: request.body.key } });
  const code = valid ? "VALID" : (error?.code ?? "");
  return { keyId: key?.id, valid, code, meta: {}, remaining: key?.remaining, requestId: request.id };
});
await app.listen({ host: "127.0.0.1", port: 0 });
console.log(app.server.address().port);
