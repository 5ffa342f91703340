import { X509Certificate } from "node:crypto";
import { Secret } from "../../domain/secret.ts";

/* Settings as they are sent to a worker. Between processes an object of a class would lose what it is. */

type Plain = Readonly<Record<string, unknown>>;

/** As plain data, with secrets revealed. It goes over a channel that no other process can read. */
export function toMessage(value: unknown): unknown {
  if (value instanceof Secret) return { secret: value.reveal() };
  if (value instanceof X509Certificate) return { certificate: value.toString() };
  if (Array.isArray(value)) return value.map(toMessage);
  return isPlain(value) ? mapped(value, toMessage) : value;
}

export function fromMessage(message: unknown): unknown {
  if (Array.isArray(message)) return message.map(fromMessage);
  if (!isPlain(message)) return message;
  if (typeof message.secret === "string") return new Secret(message.secret);
  if (typeof message.certificate === "string") return new X509Certificate(message.certificate);
  return mapped(message, fromMessage);
}

function mapped(value: Plain, change: (value: unknown) => unknown): Plain {
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, change(each)]));
}

function isPlain(value: unknown): value is Plain {
  return typeof value === "object" && value !== null;
}
