import http from "node:http";
import type { VerifyKeyResponse } from "../../src/sdk/index.ts";
import { atTestEnd } from "./test-end.ts";

/** Verifies a key over a connection of its own, always the same. */
export type VerifyOverOne = (key: string) => Promise<VerifyKeyResponse>;

/** So many connections: of a service with several workers, enough of them reach every worker. */
export function openConnections(baseUrl: string, connections: number): readonly VerifyOverOne[] {
  return Array.from({ length: connections }, () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    atTestEnd(() => agent.destroy());
    return (key) => verifyOver(agent, baseUrl, key);
  });
}

/** Every caller gets so many answers, one after the other. On a busy machine it may be told to ask again. */
export async function crowd(
  callers: readonly VerifyOverOne[],
  key: string,
  answersEach: number,
): Promise<VerifyKeyResponse[]> {
  const ask = async (verify: VerifyOverOne) => {
    const answers: VerifyKeyResponse[] = [];
    while (answers.length < answersEach) {
      const answer = await verify(key).catch((error: Error) => {
        if (!error.message.startsWith("503")) throw error;
      });
      if (answer !== undefined) answers.push(answer);
    }
    return answers;
  };
  return (await Promise.all(callers.map(ask))).flat();
}

function verifyOver(agent: http.Agent, baseUrl: string, key: string): Promise<VerifyKeyResponse> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const request = http.request(`${baseUrl}/v1/keys.verifyKey`, { method: "POST", headers, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("error", reject).on("end", () => {
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`${response.statusCode}: ${text}`));
      });
    });
    request.on("error", reject);
    request.end(JSON.stringify({ key }));
  });
}
