import type { Secret } from "../domain/secret.ts";
import type { OpenedCore } from "./opened-core.ts";
import type { ReadyState } from "./ready-state.ts";

/** The rest of a start, after the port was bound. Resolves with the root key if one was just generated. */
export async function becomeReady(
  prepared: Promise<void>,
  opened: OpenedCore,
  readyState: ReadyState,
): Promise<Secret | undefined> {
  await prepared;
  const generated = await opened.completeStart();
  await readyState.open();
  return generated;
}
