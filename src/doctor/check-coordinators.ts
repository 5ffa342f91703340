import { connect } from "node:tls";
import type { Clock } from "../ambient/clock.ts";
import { hostOf } from "../config/hosts.ts";
import type { LinkCredentials } from "../core/remote/link-credentials.ts";
import { type CoordinatorState, probeCoordinator } from "../core/remote/probe-coordinator.ts";
import { isUntrustedCertificate } from "../domain/untrusted-certificate.ts";
import { reportValidity } from "./certificates.ts";
import type { Report } from "./run-checks.ts";

const probeMs = 3000;
/** 0.25 s to the coordinator and 0.16 s from there to the database: see docs/metrics.md. */
const pathMaxMs = 410;

/** Each of LATCHKEY_COORDINATORS, by the stream that an edge opens. */
export async function checkCoordinators(
  coordinators: readonly string[],
  credentials: LinkCredentials,
  clock: Pick<Clock, "nowMs">,
  report: Report,
): Promise<void> {
  const check = async (address: string) => {
    const state = await probeCoordinator(address, credentials, probeMs);
    reportState(address, state, report);
    if (state.outcome === "answered" && address.startsWith("https://"))
      await reportCertificate(address, credentials.ca, clock.nowMs(), report);
  };
  await Promise.all(coordinators.map(check));
}

function reportState(address: string, state: CoordinatorState, { checked, found }: Report): void {
  if (state.outcome === "failed") reportFailure(address, state.reason, found);
  else if (state.stopping) {
    const fix = "Wait until it is started again, or remove it from LATCHKEY_COORDINATORS.";
    found("coordinator-unreachable", `the coordinator ${address} is stopping`, fix);
  } else if (state.ledgerAway) {
    const fix = "latchkey doctor on that coordinator's machine, with its settings: its Postgres does not answer it.";
    found("coordinator-without-ledger", `the coordinator ${address} has no ledger`, fix);
  } else if (state.pathMs > pathMaxMs) {
    const fix = "Start a coordinator nearer to this edge, or move the edge: ping and mtr show where the time goes.";
    found("coordinator-far", `the path over ${address} takes ${Math.round(state.pathMs)} ms`, fix);
  } else {
    checked(`${address} answers, ${Math.round(state.pathMs)} ms to its ledger and back`);
  }
}

function reportFailure(address: string, reason: string, found: Report["found"]): void {
  if (reason === "HTTP 401" || reason === "UNAUTHENTICATED" || reason === "PERMISSION_DENIED") {
    const fix =
      "Set LATCHKEY_INTERNAL_SECRET (or LATCHKEY_INTERNAL_SECRET_FILE) to the coordinator's; sha256sum of both files must be the same.";
    found("coordinator-refused", `the coordinator ${address} refuses LATCHKEY_INTERNAL_SECRET`, fix);
  } else if (isUntrustedCertificate(reason)) {
    const fix =
      reason === "ERR_TLS_CERT_ALTNAME_INVALID"
        ? "Name the coordinator in LATCHKEY_COORDINATORS as its certificate does, or request one for this address."
        : reason === "CERT_HAS_EXPIRED"
          ? "Renew the certificate on the coordinator's machine: LATCHKEY_INTERNAL_TLS_CERT, LATCHKEY_INTERNAL_TLS_KEY."
          : "LATCHKEY_INTERNAL_CA_FILE=/path/ca.pem must name the authority that issued it.";
    found("coordinator-untrusted", `the certificate of the coordinator ${address} is not trusted: ${reason}`, fix);
  } else {
    const fix =
      "Start it (latchkey serve --role coordinator), or correct LATCHKEY_COORDINATORS, its https:// or the firewall: it is the coordinator's LATCHKEY_INTERNAL_PORT.";
    found("coordinator-unreachable", `the coordinator ${address} does not answer: ${reason}`, fix);
  }
}

async function reportCertificate(address: string, ca: string | undefined, nowMs: number, report: Report) {
  const url = new URL(address);
  const certificate = await readPeerCertificate(hostOf(url), Number(url.port) || 443, ca);
  if (certificate === undefined) return;
  const renew = "Renew it on the coordinator's machine: LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY.";
  reportValidity(`the certificate of the coordinator ${address}`, certificate, nowMs, renew, report);
}

/** The certificate of a server that has just proved itself. Undefined: it is gone meanwhile. */
function readPeerCertificate(host: string, port: number, ca: string | undefined) {
  return new Promise<{ validFrom: string; validTo: string } | undefined>((resolve) => {
    const socket = connect({ host, port, ...(ca !== undefined && { ca }), timeout: probeMs });
    const finish = (certificate?: { validFrom: string; validTo: string }) => {
      resolve(certificate);
      socket.destroy();
    };
    socket.once("secureConnect", () => {
      const { valid_from: validFrom, valid_to: validTo } = socket.getPeerCertificate();
      finish({ validFrom, validTo });
    });
    socket.on("error", () => finish());
    socket.once("timeout", () => finish());
  });
}
