import type { Secret } from "../../domain/secret.ts";

/** How an edge proves itself to a coordinator, and how it knows it. */
export interface LinkCredentials {
  readonly secret?: Secret | undefined;
  /** Certificates in PEM form that replace the ones that Node trusts. */
  readonly ca?: string | undefined;
  /** The edge's own certificate, in PEM form. */
  readonly certPem?: string | undefined;
  readonly keyPem?: Secret | undefined;
}

/** How the stream to a coordinator is asked for. */
export function linkStreamOptions(address: string, { secret, ca, certPem: cert, keyPem }: LinkCredentials) {
  const headers: Record<string, string> = secret === undefined ? {} : { authorization: `Bearer ${secret.reveal()}` };
  return { address, path: "/latchkey.core.v2.CoreService/Link", headers, ca, cert, key: keyPem?.reveal() };
}
