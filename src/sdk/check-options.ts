/** Refuses options that do not exist: a misspelt `apiId` would let keys of other APIs pass, and nobody would notice. */
export function checkOptions(of: string, options: object, names: Readonly<Record<string, true>>): void {
  const unknown = Object.keys(options).filter((name) => !Object.hasOwn(names, name));
  if (unknown.length === 0) return;
  throw new TypeError(`${of} has no option ${unknown.join(", ")}; it has ${Object.keys(names).join(", ")}`);
}
