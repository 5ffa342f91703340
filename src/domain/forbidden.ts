/** The caller's root key is valid and may not do this. Nothing was done. Its message is safe to show to the caller. */
export class Forbidden extends Error {
  override readonly name = "Forbidden";
}

export function lacksPermission(permission: string): Forbidden {
  return new Forbidden(`the root key lacks the permission ${permission}`);
}
