/** Nobody could have a valid root key, and none is generated without being asked for. */
export class RootKeyRetired extends Error {
  override readonly name = "RootKeyRetired";

  constructor() {
    super(
      "no root key would be valid: the generated one was retired when LATCHKEY_ROOT_KEY was set, and none is set now. " +
        "Set LATCHKEY_ROOT_KEY again, or set LATCHKEY_GENERATE_ROOT_KEY=1 to have a new one generated",
    );
  }
}
