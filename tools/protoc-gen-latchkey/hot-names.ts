// What readers and writers of hot messages have in common.
import type { DescField, DescMessage } from "@bufbuild/protobuf";

/** How a field is called in JavaScript, in JSON and on the wire. */
export interface HotNames {
  readonly name: string;
  readonly jsonName: string;
  /** The byte in front of the field: its number and its wire type. */
  readonly tag: number;
}

/** Where the type of a message is found. */
export interface HotMessage {
  readonly name: string;
  /** Path of its proto file without its extension. */
  readonly path: string;
}

const wireTypes = { varint: 0, bit64: 1, lengthDelimited: 2 } as const;

export function namesOf(field: DescField, wireType: keyof typeof wireTypes): HotNames {
  if (field.number > 15) throw refuse(field, "the number of a hot field is at most 15, so that its tag is one byte");
  return { name: field.localName, jsonName: field.jsonName, tag: (field.number << 3) | wireTypes[wireType] };
}

/** `around` holds the messages that the field's message is in. */
export function checkFinite(field: DescField, message: DescMessage, around: readonly DescMessage[]): void {
  if (around.includes(message)) throw refuse(field, "a hot message cannot hold itself");
}

export function refuse(desc: DescField | DescMessage, reason: string): Error {
  return new Error(`${desc}: ${reason}`);
}

export function hex(tag: number): string {
  return `0x${tag.toString(16).padStart(2, "0")}`;
}

/** Each message once, by its name: those of our package are all top-level. */
export function distinct<Message extends HotMessage>(messages: readonly Message[]): Message[] {
  return [...new Map(messages.map((message) => [message.name, message])).values()];
}
