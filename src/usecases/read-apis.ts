import type { StoredApi } from "../domain/api.ts";
import type { Management } from "../store/management.ts";
import type { ApiPage, ApiPosition } from "../store/queries.ts";

export type { ApiPosition };

const limitDefault = 50;

/** Undefined if there is no such API. */
export function getApi(management: Pick<Management, "read">, apiId: string): Promise<StoredApi | undefined> {
  return management.read({ kind: "api", apiId });
}

/** A page of APIs, newest first. */
export function listApis(
  management: Pick<Management, "read">,
  { limit = limitDefault, after }: { readonly limit?: number | undefined; readonly after?: ApiPosition | undefined },
): Promise<ApiPage> {
  return management.read({ kind: "apis", limit, after });
}
