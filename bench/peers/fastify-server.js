// fastify with rate-limiter-flexible in its handler: `node fastify-server.js memory|redis|postgres <file with the keys>
// <URL of the store>`; prints its port. Keys are looked up by their digest in memory, as Latchkey's are in its cache.
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import fastify from "fastify";
import { Redis } from "ioredis";
import pg from "pg";
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";

const [kind, keysFile, storeUrl] = process.argv.slice(2);
const rule = { points: 2_147_483_647, duration: 86_400 };
const digestOf = (key) => hash("sha256", key, "base64url");
const ids = JSON.parse(readFileSync(keysFile, "utf8")).map((key, i) => [
  digestOf(key),
  `key_${i.toString(36).padStart(22, "0")}`,
]);
const idOf = new Map(ids);

const limiters = {
  memory: () => new RateLimiterMemory(rule),
  redis() {
    // Its client's way to send what one turn asks for together, which is faster.
    const storeClient = new Redis(storeUrl, { enableAutoPipelining: true });
    return new RateLimiterRedis({ ...rule, storeClient, inMemoryBlockOnConsumed: rule.points });
  },
  async postgres() {
    const storeClient = new pg.Pool({ connectionString: storeUrl, max: 20, idleTimeoutMillis: 0 });
    const { promise, resolve, reject } = Promise.withResolvers();
    const limiter = new RateLimiterPostgres(
      { ...rule, storeClient, storeType: "pool", inMemoryBlockOnConsumed: rule.points },
      (error) => (error ? reject(error) : resolve()),
    );
    await promise;
    return limiter;
  },
};
const limiter = await limiters[kind]();

const text = { type: "string" };
const whole = { type: "integer" };
const ratelimit = { type: "object", properties: { limit: whole, remaining: whole, reset: whole } };
const answer = { keyId: text, valid: { type: "boolean" }, code: text, meta: { type: "object" }, ratelimit };
const schema = {
  body: { type: "object", required: ["key"], properties: { key: text } },
  // With it fastify writes answers by a function made for them.
  response: { 200: { type: "object", properties: { ...answer, requestId: text } } },
};

const app = fastify({ logger: false });
app.post("/v1/keys.verifyKey", { schema }, async ({ body, id: requestId }) => {
  const keyId = idOf.get(digestOf(body.key));
  if (keyId === undefined) return { valid: false, code: "NOT_FOUND", meta: {}, requestId };
  const { admitted, state } = await consume(keyId);
  const reset = Date.now() + state.msBeforeNext;
  const window = { limit: rule.points, remaining: state.remainingPoints, reset };
  const code = admitted ? "VALID" : "RATE_LIMITED";
  return { keyId, valid: admitted, code, meta: {}, ratelimit: window, requestId };
});
await app.listen({ host: "127.0.0.1", port: 0 });
console.log(app.server.address().port);

async function consume(keyId) {
  try {
    return { admitted: true, state: await limiter.consume(keyId) };
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    return { admitted: false, state: refusal };
  }
}
