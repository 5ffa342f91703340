/* HTTP/2 frames made by hand, for bytes that no client library would send. */

export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const endStream = 0x1;
export const endHeaders = 0x4;

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** How every HTTP/2 connection begins, with these settings. */
export function hello(...settings: [id: number, value: number][]): Buffer {
  const payload = Buffer.concat(
    settings.map(([id, value]) => {
      const setting = Buffer.alloc(6);
      setting.writeUInt16BE(id);
      setting.writeUInt32BE(value, 2);
      return setting;
    }),
  );
  return Buffer.concat([preface, frame(frameType.settings, 0, 0, payload)]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Headers in HPACK, each as a literal that no table remembers. */
export function headerBlock(headers: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.of(0), hpackText(name), hpackText(value)]));
}

function hpackText(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([hpackLength(bytes.length), bytes]);
}

function hpackLength(length: number): Buffer {
  if (length < 127) return Buffer.of(length);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

export const verifyHeaders: readonly (readonly [string, string])[] = [
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/v1/keys.verifyKey"],
  [":authority", "localhost"],
  ["content-type", "application/json"],
];

/** The HEADERS frame of a request that has a body to come. */
export function openRequest(stream: number, headers = verifyHeaders): Buffer {
  return frame(frameType.headers, endHeaders, stream, headerBlock(headers));
}

export function getRequest(stream: number, path: string): Buffer {
  const headers = [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "localhost"],
  ] as const;
  return frame(frameType.headers, endHeaders | endStream, stream, headerBlock(headers));
}

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function parseFrames(bytes: Buffer): ReceivedFrame[] {
  const frames: ReceivedFrame[] = [];
  let at = 0;
  while (at + 9 <= bytes.length) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    frames.push({
      type: bytes.readUInt8(at + 3),
      flags: bytes.readUInt8(at + 4),
      stream: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + 9, end),
    });
    at = end;
  }
  return frames;
}
