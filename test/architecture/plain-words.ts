/*
 * Words that are no names in this code base, and comments that begin as no sentence does: CONTRIBUTING.md says why. Names
 * are compared by whole words: `isTold` has the word told, `toldToken` too, and `untold` has not.
 */

/** A word, or several in a row, and what to write instead. A private name with its # stands for that name alone. */
const plainWords: Readonly<Record<string, string>> = {
  told: "announced, reported, sent",
  brought: "imported, loaded",
  shown: "read, displayed, visible, reported",
  heldElsewhere: "heldByOthers",
  reliedText: "what the text does: transactionSettings",
  stillThere: "exists, requireExisting",
  "#arrive": "onConnect, onMessage",
  "#follow": "watch, onChange",
  "#lose": "onDisconnect",
  "#tried": "attempts, isAttempted",
  "#handBack": "release, returnPermits",
};

/** Names in which such a word is the ordinary one, each with the reason. */
const ordinary: Readonly<Record<string, string>> = {};

/** Every name and every comment of a file that should be in other words, each in a line. */
export function findRiddles(file: string, text: string): string[] {
  const { code, comments } = splitSource(text);
  const names = new Set(code.match(/#?[A-Za-z_$][\w$]*/g));
  const refused = [...names].flatMap((name) => {
    const word = Object.hasOwn(ordinary, name) ? undefined : wordIn(name);
    return word === undefined ? [] : [`${file}: ${name}; write ${plainWords[word]}`];
  });
  const begins = comments.filter((comment) => /^(?:\/\/|\/\*\*?)[\s*]*Of\s/.test(comment));
  return [
    ...refused,
    ...begins.map((comment) => `${file}: ${comment.slice(0, 60).replaceAll(/\s+/g, " ")}; begin otherwise`),
  ];
}

function wordIn(name: string): string | undefined {
  const words = ` ${wordsOf(name)} `;
  return Object.keys(plainWords).find((word) =>
    word.startsWith("#") ? name === word : words.includes(` ${wordsOf(word)} `),
  );
}

/** The words of a name in camel case or in capitals, in lower case and apart. */
function wordsOf(name: string): string {
  return name
    .replaceAll(/[#$_]+/g, " ")
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .trim();
}

/**
 * The code of a file without its texts, and its comments. Lines of `//` are one comment each, as each can begin a sentence
 * only if the line before does not go on: a line that follows another such line is no comment of its own.
 */
function splitSource(text: string): { code: string; comments: string[] } {
  const comments: string[] = [];
  // In this order: what begins first decides. Of a template only what is between its texts is code.
  const parts =
    /\/\*[\s\S]*?\*\/|(?:(?<=^|\s)\/\/.*(?:\n[ \t]*)?)+|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[\s\S])*`/g;
  const code = text.replaceAll(parts, (part) => {
    if (part.startsWith("/")) comments.push(part);
    return part.startsWith("`") ? [...part.matchAll(/\$\{([^}]*)\}/g)].map(([, inner]) => inner).join(" ; ") : " ";
  });
  return { code, comments };
}
