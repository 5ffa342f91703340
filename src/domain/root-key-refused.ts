/** A call that needs a root key came with something else, or with a root key that is no longer valid. Nothing was done. */
export class RootKeyRefused extends Error {
  override readonly name = "RootKeyRefused";

  constructor() {
    super("the root key is not valid");
  }
}
