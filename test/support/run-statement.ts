import pg from "pg";

/** Runs one statement on a connection of its own, which is waited for as long as it takes unless a time is given. */
export async function query(url: string, text: string, connectionTimeoutMillis = 0): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis });
  // The server may go away before the connection does.
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}
