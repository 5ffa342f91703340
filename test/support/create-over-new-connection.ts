import http from "node:http";
import { nextLoopbackAddress } from "./loopback-address.ts";

/** The code of a key's creation ("OK" for a success), over a new connection, which may go to any thread. */
export function createOverNewConnection(baseUrl: string, rootKey: string, apiId: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${rootKey}` };
    const options = { method: "POST", headers, agent: false, localAddress: nextLoopbackAddress() } as const;
    const request = http.request(`${baseUrl}/v1/keys.createKey`, options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.on("error", reject);
      response.on("end", () => resolve(response.statusCode === 200 ? "OK" : JSON.parse(body).error.code));
    });
    request.on("error", reject);
    request.end(JSON.stringify({ apiId }));
  });
}
