export interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly code: string | undefined;
  readonly remaining: number | undefined;
}

interface AnswerBody {
  readonly code?: string;
  readonly remaining?: number;
  readonly error?: { readonly code: string };
}

export async function verify({ baseUrl }: { readonly baseUrl: string }, key = ""): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${baseUrl}/v1/keys.verifyKey`, {
    method: "POST",
    headers,
    body: JSON.stringify({ key }),
  });
  const { code, remaining, error } = (await response.json()) as AnswerBody;
  return {
    status: response.status,
    retryAfter: response.headers.get("retry-after"),
    code: code ?? error?.code,
    remaining,
  };
}
