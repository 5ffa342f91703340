import { clientKinds, clientOf } from "./clients.ts";

/** What one verification of a counted key answered. */
export interface UseAnswer {
  readonly valid: boolean;
  readonly code: string;
  readonly remaining?: number | undefined;
}

/** Who uses a key up: clients of every kind, spread over the servers, that ask for a fifth more than there is. */
export interface UseTogetherOptions {
  readonly baseUrls: readonly string[];
  readonly rootKey: string;
  readonly clients: number;
  readonly uses: number;
}

/** Creates one key with `uses` uses and has the clients use it up together. */
export async function useUpTogether(options: UseTogetherOptions): Promise<UseAnswer[]> {
  const { baseUrls, rootKey, uses } = options;
  const [kind] = clientKinds;
  const { key } = await clientOf(kind, baseUrls[0] ?? "", rootKey).createKey({ apiId: "api", remaining: uses });
  return useTogether(key, options);
}

/** Has the clients use up a key that is there already and that should have `uses` uses. */
export async function useTogether(key: string, options: UseTogetherOptions): Promise<UseAnswer[]> {
  const { baseUrls, rootKey, uses } = options;
  if (options.clients < 1) throw new RangeError("no client would use the key");
  const clients = Array.from({ length: options.clients }, (_, i) => {
    const kind = clientKinds[i % clientKinds.length] as (typeof clientKinds)[number];
    return clientOf(kind, baseUrls[i % baseUrls.length] as string, rootKey);
  });
  const asksEach = Math.ceil((uses * 1.2) / clients.length);
  const answers = await Promise.all(
    clients.map(async (client) => {
      const own: UseAnswer[] = [];
      while (own.length < asksEach) own.push(await client.verifyKey({ key }));
      return own;
    }),
  );
  return answers.flat();
}

/** What is wrong with the answers, in words; nothing when every use was granted once and no more were. */
export function problemsWithUse(answers: readonly UseAnswer[], uses: number): string[] {
  const granted = answers.filter(({ valid }) => valid);
  const refused = answers.filter(({ valid }) => !valid);
  const values = new Set(granted.map(({ remaining }) => remaining));
  const missing = Array.from({ length: uses }, (_, value) => value).filter((value) => !values.has(value));
  const oddly = refused.filter(({ code, remaining }) => code !== "USAGE_EXCEEDED" || remaining !== 0);
  const problems: string[] = [];
  if (refused.length === 0) problems.push("no call was refused: too few calls to tell");
  if (granted.length !== uses) problems.push(`${granted.length} of ${uses} uses were granted`);
  if (values.size !== granted.length) problems.push(`${granted.length - values.size} values of remaining came twice`);
  if (missing.length > 0) problems.push(`${missing.length} values of remaining never came`);
  if (oddly.length > 0) problems.push(`${oddly.length} refusals were not USAGE_EXCEEDED with 0 remaining`);
  return problems;
}
