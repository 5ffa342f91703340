import { testInternalSecret } from "./test-root-key.ts";

/** The sum of a metric over all its labels, or over those that are named, as the service tells it; 0 when it has none. */
export async function readMetric(internalPort: number, name: string): Promise<number> {
  return sumMetric(await readMetrics(internalPort), name);
}

/** All metrics, in their printed form. */
export async function readMetrics(internalPort: number): Promise<string> {
  // For servers that were given this secret. Others do not look at it.
  const headers = { authorization: `Bearer ${testInternalSecret}` };
  const answer = await fetch(`http://127.0.0.1:${internalPort}/metrics`, { headers });
  if (!answer.ok) throw new Error(`the metrics were refused with ${answer.status}`);
  return answer.text();
}

/** The same of metrics in their printed form. */
export function sumMetric(printed: string, name: string): number {
  const samples = printed.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}
