/** A promise was broken, in words. */
export class Violation extends Error {
  override readonly name = "Violation";
}
