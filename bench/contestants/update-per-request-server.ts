// The usual way to count uses: a thin server on `node:http` that spends each with a statement of its own, on Latchkey's
// tables. `node update-per-request-server.ts <database URL>`; prints its port. It knows the keys' ids from the beginning, as
// Latchkey knows them from its cache.
import http from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { sha256 } from "../../src/ambient/crypto.ts";

const poolSize = 12;
const text = "UPDATE counters SET remaining = remaining - 1 WHERE subject = $1 AND remaining > 0 RETURNING remaining";

const pool = new pg.Pool({ connectionString: process.argv[2], max: poolSize, idleTimeoutMillis: 0 });
const { rows } = await pool.query<{ digest: string; id: string }>("SELECT digest, id FROM keys");
const idOf = new Map(rows.map(({ digest, id }) => [digest, id]));
const requestId = "req_0000000000000000000000";

const server = http.createServer((req, res) => {
  let body = "";
  req.on("data", (chunk) => {
    body += chunk;
  });
  req.on("end", async () => {
    const keyId = idOf.get(sha256(JSON.parse(body).key));
    const spent = await pool.query<{ remaining: number }>({ name: "spend", text, values: [keyId] });
    const [counter] = spent.rows;
    const verdict = counter === undefined ? { valid: false, code: "USAGE_EXCEEDED" } : { valid: true, code: "VALID" };
    const answer = JSON.stringify({ keyId, ...verdict, meta: {}, remaining: counter?.remaining, requestId });
    res.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(answer),
      "x-request-id": requestId,
    });
    res.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
