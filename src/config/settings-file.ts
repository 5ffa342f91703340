/** What a file of settings says, and sentences about what is wrong with it. They repeat no value: it may be a secret. */
export interface SettingsFile {
  readonly values: Readonly<Record<string, string>>;
  readonly problems: readonly string[];
}

/** A secret on a line of its own that ends with = looks like a name. */
function unknown(name: string, suggest: (name: string) => string): string {
  const isOurs = name.startsWith("LATCHKEY_");
  return `${isOurs ? name : "a name"}, which is not a setting of Latchkey${isOurs ? suggest(name) : ""}`;
}

/** Lines of `NAME=value`; a value may stand in quotes. Empty lines and lines that begin with # are skipped. */
export function parseSettingsFile(
  text: string,
  isKnown: (name: string) => boolean,
  suggest: (name: string) => string = () => "",
): SettingsFile {
  const problems: string[] = [];
  const values = new Map<string, string>();
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const place = `LATCHKEY_SETTINGS_FILE, line ${index + 1},`;
    const { name, value = "" } = /^(?<name>[A-Za-z_]\w*)\s*=\s*(?<value>.*)$/.exec(line)?.groups ?? {};
    if (name === undefined) problems.push(`${place} must be NAME=value`);
    else if (!isKnown(name)) problems.push(`${place} has ${unknown(name, suggest)}`);
    else if (values.has(name)) problems.push(`${place} has ${name} a second time`);
    else values.set(name, /^(["'])(?<inner>.*)\1$/.exec(value)?.groups?.inner ?? value);
  }
  return { values: Object.fromEntries(values), problems };
}
