import { itemsOf, type MethodCall } from "./call-method.ts";
import { UsageError } from "./command-error.ts";
import type { CliCommand } from "./groups.ts";
import type { JsonMessage } from "./set-field.ts";

/** What the service lists in a page without `limit`. */
const defaultLimit = 50;

/** Whether the request lists keys of all APIs: the service lists those of one API or owner. */
export function isForAllApis({ method }: CliCommand, request: JsonMessage): boolean {
  if (method !== "listKeys" || "apiId" in request || "ownerId" in request) return false;
  if ("cursor" in request)
    throw new UsageError("--cursor goes on with the list of one API or owner: give --api-id or --owner-id too");
  return true;
}

/**
 * The keys of one API after the other: as many as a page has, or all. Each API has an index for searches, which a list over
 * all of them would not have.
 */
export async function listForAllApis(
  { listApis, listKeys }: { readonly listApis: MethodCall; readonly listKeys: MethodCall },
  request: JsonMessage,
  wantsAllPages: boolean,
): Promise<{ readonly answer: JsonMessage; readonly isCut: boolean }> {
  const max = wantsAllPages ? Number.POSITIVE_INFINITY : Number(request.limit ?? defaultLimit);
  const keys: JsonMessage[] = [];
  for await (const { apiId } of itemsOf(listApis, "apis", { limit: 100 })) {
    for await (const key of itemsOf(listKeys, "keys", { ...request, apiId })) {
      if (keys.length === max) return { answer: { keys }, isCut: true };
      keys.push(key);
    }
  }
  return { answer: { keys }, isCut: false };
}
