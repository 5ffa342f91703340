/** Whether a code of Node says that a peer's certificate is not trusted. */
export function isUntrustedCertificate(code: string): boolean {
  return /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/.test(code);
}
