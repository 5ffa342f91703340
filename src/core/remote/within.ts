import { Unavailable } from "../../domain/unavailable.ts";

/** The answer, if it comes in time. Otherwise rejects with `Unavailable`, and what comes later is ignored. */
export async function within<Answer>(timeoutMs: number, answer: Promise<Answer>, message: string): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Unavailable(message)), timeoutMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
