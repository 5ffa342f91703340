// Serves a handler of Request and Response on Node, for the examples. Deno, Bun and Workers do this themselves.
import { createServer } from "node:http";

export function serve(handler) {
  const server = createServer(async ({ method, url, headers }, response) => {
    const answer = await handler(new Request(`http://localhost${url}`, { method, headers }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  server.listen(Number(process.env.EXAMPLE_PORT ?? 3000), "127.0.0.1", () => {
    console.log(`listening on http://127.0.0.1:${server.address().port}`);
  });
}
