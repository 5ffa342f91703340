/** Posts to the JSON gateway and returns the raw text, for tests of its exact form. */
export async function postJson(
  baseUrl: string,
  path: string,
  body: string | object,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const response = await fetch(baseUrl + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}
