/**
 * The sentence that callers read in place of a regular expression, by the `pattern` of a rule in the proto files. A test
 * fails for a pattern without one.
 */
export const patternMessages: Readonly<Record<string, string>> = {
  "^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$":
    "must begin with a letter and end with a letter or digit, and must have only letters, digits and _",
  "^[A-Za-z0-9_.-]+$": "must have only letters, digits, _, . and -",
  "^([A-Za-z0-9_.:-]+|([A-Za-z0-9_.:-]+\\.)?\\*)$":
    "must have only letters, digits, _, ., : and -, or be such a name with .* behind it, or *",
  "^([0-9A-Fa-f]{64}|[0-9A-Za-z+/_-]{42}[AEIMQUYcgkosw048]=?)$": "must be a SHA-256 digest in hex or base64",
};

/** Of a message of protovalidate, which ends with the pattern. */
export function phrasePattern(message: string): string {
  const [, pattern = ""] = /`(.*)`$/s.exec(message) ?? [];
  return patternMessages[pattern] ?? "has characters that are not allowed";
}
