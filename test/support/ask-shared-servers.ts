import { inject } from "vitest";

const url = inject("sharedServers");

/** Whether this run has servers. */
export const hasServers = url !== undefined;

/** The address of a server that all test files of the run share. The first to ask waits until it has started. */
export async function askSharedServers(name: "postgres" | "redis"): Promise<string> {
  const answer = await fetch(`${url}/${name}`);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.text();
}
