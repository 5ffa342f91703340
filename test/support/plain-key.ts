import type { KeyProperties } from "../../src/domain/key.ts";
import { keyFields } from "../../src/domain/resources.ts";

/** What a caller gives a key of which it says nothing. */
export const plainKey = {
  ...Object.fromEntries(
    Object.entries(keyFields).map(([name, field]) => [name, (field as { byDefault?: unknown }).byDefault]),
  ),
  remaining: undefined,
} as unknown as KeyProperties;
