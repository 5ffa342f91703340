const form = /^[^/?#]*\/\/[^/?#]*(?<path>[^?#]*)(?:\?(?<query>[^#]*))?(?<fragment>#.*)?$/s;

/**
 * A / ? or # in a user or password ends the login too early: its rest, up to the @, is then taken for a path, options or
 * a fragment. Throws an Error whose message repeats nothing of the URL. Values of options may contain an @.
 */
export function requireEncodedLogin(url: string): void {
  const { path = "", query = "", fragment = "" } = form.exec(url)?.groups ?? {};
  const optionNames = query.split("&").map((option) => option.replace(/=.*$/s, ""));
  if (![path, fragment, ...optionNames].some((part) => part.includes("@"))) return;
  throw new Error(
    "must have special characters of user, password and database percent-encoded: " +
      "@ is %40, / is %2F, ? is %3F, # is %23",
  );
}
