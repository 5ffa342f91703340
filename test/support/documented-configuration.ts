import { readText } from "./repository.ts";

/** The configuration on a page of the documentation: its first block of this language. */
export function readConfiguration(page: string, language: string): string {
  const [, text] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "ms").exec(readText(page)) ?? [];
  if (text === undefined) throw new Error(`${page} has no block of ${language}`);
  return text;
}

/** Puts this machine's addresses in the place of the documented ones. Each of those must be in it. */
export function substitute(script: string, addresses: Readonly<Record<string, string>>): string {
  return Object.entries(addresses).reduce((text, [documented, local]) => {
    if (!text.includes(documented)) throw new Error(`${documented} is not in this text:\n${text}`);
    return text.replaceAll(documented, local);
  }, script);
}
