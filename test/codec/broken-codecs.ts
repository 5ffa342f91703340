import { FrameWriter } from "../../src/codec/frame-writer.ts";
import { hashOf, JsonReader } from "../../src/codec/json-reader.ts";
import { WireReader } from "../../src/codec/wire-reader.ts";
import type { Breakage } from "../support/gadgets.ts";

class LenientJson extends JsonReader {
  override readWhole(min: number, max: number): number | undefined {
    const [digits] = this.text.slice(this.at - this.start).match(/^\s*\d+(\.0)?/) ?? [""];
    this.at += digits.length;
    const value = Number(digits);
    return digits !== "" && value >= min && value <= max ? value : undefined;
  }
}

class BoundlessWire extends WireReader {
  override readWhole(min: number, max: number): number | undefined {
    const { end } = this;
    this.end = this.bytes.length;
    const value = super.readWhole(min, max);
    this.end = end;
    return value;
  }
}

class OverlappingWire extends WireReader {
  override readMessage<Message>(read: (wire: WireReader) => Message | undefined): Message | undefined {
    const outerEnd = this.end;
    const length = this.bytes[this.at++] as number;
    this.end = Math.min(this.at + length, this.bytes.length);
    const message = read(this);
    this.end = outerEnd;
    return message;
  }
}

class LiteralWire extends WireReader {
  override readBool(): boolean | undefined {
    const byte = this.bytes[this.at++];
    return byte === undefined ? undefined : byte === 1;
  }
}

class WrappingWire extends WireReader {
  override readWhole(min: number, max: number): number | undefined {
    let value = 0;
    for (let shift = 0; this.at < this.end; shift += 7) {
      const byte = this.bytes[this.at++] as number;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return Math.abs(value) >= min && Math.abs(value) <= max ? Math.abs(value) : undefined;
    }
    return undefined;
  }
}

class ShortWriter extends FrameWriter {
  override endMessage(start: number): void {
    this.bytes[start - 1] = this.at - start;
  }
}

/** Codecs of gadgets.proto that are wrong in one way each. The comparison has to notice all of them. */
export const brokenCodecs: Readonly<Record<string, Breakage>> = {
  "a number beyond its bound": { replace: ["readWhole(0, 2147483647)", "readWhole(0, 4294967295)"] },
  "a text that is too short": { replace: ["readText(1, 255)", "readText(0, 255)"] },
  "a text that is too long": { replace: ["readText(1, 64)", "readText(1, 65)"] },
  "a pattern that is not asked": { replace: ["|| !nameOfNamedGadgetCost.test($name)", ""] },
  "a number that comes twice": { replace: ["$cost !== undefined) return", "false) return"] },
  "a message that comes twice": { replace: ["$remaining !== undefined) return", "false) return"] },
  "a list that comes twice": { replace: ["$ratelimits !== undefined) return", "false) return"] },
  "a text that is missing inside": { replace: ["if ($name === undefined) return undefined;", ""] },
  "a message that is missing": { replace: [" || $inner === undefined", ""] },
  "a list that is too long in JSON": { replace: ["Json, 0, 16", "Json, 0, 17"] },
  "a list that is too long on the wire": { replace: ["$ratelimits, 16)", "$ratelimits, 17)"] },
  "an empty list that is needed": { replace: ["Json, 2, 3", "Json, 0, 3"] },
  "a list that is too short in JSON": { replace: ["Json, 2, 3", "Json, 1, 3"] },
  "a list that is too short on the wire": { replace: [" || $shelves.length < 2", ""] },
  "a list that is not there": { replace: [" ?? noItems", ""] },
  "one field in the place of another": { replace: ["ratelimit: $ratelimit,", "ratelimit: $remaining,"] },
  "a name with the hash of another": { replace: ['!json.isName("cost")', "false"] },
  "text behind the request": { replace: ["json.isAtEnd() ? message", "true ? message"] },
  "an unknown field in JSON": {
    replace: ["switch (name) {", `switch (name) { case ${hashOf("unknown")}: ${skip("json")}`],
  },
  "an unknown field on the wire": {
    replace: ["switch (wire.readTag()) {", `switch (wire.readTag()) { case 0x70: ${skip("wire")}`],
  },
  "leading zeros and fractions": { runtime: { JsonReader: LenientJson } },
  "a number that reaches beyond its message": { runtime: { WireReader: BoundlessWire } },
  "a message that reaches beyond the one around it": { runtime: { WireReader: OverlappingWire } },
  "a flag that is true in another way": { runtime: { WireReader: LiteralWire } },
  "a number of more than 32 bits": { runtime: { WireReader: WrappingWire } },
  "zero that is taken for absent": { replace: ["message.remaining !== undefined)", "message.remaining)"] },
  "false that is taken for absent": { replace: ["if (message.wire !== undefined)", "if (message.wire)"] },
  "an empty list that is not printed": {
    replace: ["printList(message.states,", "(message.states?.length ? printList : String)(message.states,"],
  },
  "a comma before the first member": { replace: ['if (json !== "{") json += ",";', 'json += ",";'] },
  "a long message with a length of one byte": { runtime: { FrameWriter: ShortWriter } },
  "too little room for a list": { replace: ["listSize(message.ratelimits, 6, sizeNamedGadgetState)", "0"] },
};

function skip(reader: string): string {
  return `if (${reader}.readWhole(0, 9) === undefined) return undefined; break;`;
}
