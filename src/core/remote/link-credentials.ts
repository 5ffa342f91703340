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
