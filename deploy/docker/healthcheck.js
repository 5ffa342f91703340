// Exits with 0 if the service in this container lives. It asks in the way that the port speaks.
import http from "node:http";
import https from "node:https";

const { get } = process.env.LATCHKEY_TLS_CERT ? https : http;
const address = { host: "127.0.0.1", port: process.env.PORT ?? 8080, path: "/livez" };
// The certificate names the host as clients know it, never the loopback address.
const req = get({ ...address, timeout: 2000, rejectUnauthorized: false }, (res) => {
  process.exit(res.statusCode === 200 ? 0 : 1);
});
req.on("timeout", () => process.exit(1));
req.on("error", () => process.exit(1));
