import type { Progress } from "../progress.ts";
import type { MethodCall } from "./call-method.ts";
import { CommandError, exitCodes, UsageError } from "./command-error.ts";
import type { CliCommand } from "./groups.ts";
import { parseJsonText } from "./parse-value.ts";
import { isJsonObject, type JsonMessage } from "./set-field.ts";

/** What one request may have, less room for its other fields. */
const requestBytesMax = 65_536 - 1024;

/** Sends a list that may be longer than one request takes, in several. The answer is that of all together. */
export async function callInBatches(
  command: CliCommand,
  call: MethodCall,
  request: JsonMessage,
  { progress, hasIdempotencyKey }: { readonly progress: Progress; readonly hasIdempotencyKey: boolean },
): Promise<JsonMessage> {
  const { field, max, results } = command.batch as NonNullable<CliCommand["batch"]>;
  const all = request[field];
  // The service says what is wrong with it.
  if (!Array.isArray(all)) return call(request);
  const batches = splitIntoBatches(all, max);
  if (batches.length <= 1) return call(request);
  if (hasIdempotencyKey) throw new UsageError(`--idempotency-key is for one request, and this takes ${batches.length}`);
  const found: unknown[] = [];
  for (const batch of batches) {
    try {
      found.push(...((await call({ ...request, [field]: batch }, found.length))[results] as unknown[]));
    } catch (error) {
      progress.end();
      if (!(error instanceof CommandError)) throw error;
      const isOpen = error.exitCode === exitCodes.unavailable;
      throw new CommandError(`${error.message}\n${describeStop(found, batch, all.length, isOpen)}`, error.exitCode);
    }
    progress.update(field, found.length, all.length);
  }
  progress.end();
  return { [results]: found };
}

function describeStop(found: readonly unknown[], batch: readonly unknown[], total: number, isOpen: boolean): string {
  const imported = found.filter((result) => !hasError(result)).length;
  const last = `numbers ${found.length + 1} to ${found.length + batch.length}`;
  return (
    `stopped: of the first ${found.length} of ${total}, ${imported} are imported. ` +
    `${isOpen ? `Of ${last} nothing is known` : `None of ${last} is`}, and no others were sent. ` +
    "The same command can be given again: what is there already is told as CONFLICT"
  );
}

export function hasError(result: unknown): boolean {
  return (result as { error?: unknown }).error !== undefined;
}

function splitIntoBatches(all: readonly unknown[], max: number): unknown[][] {
  const batches: unknown[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const each of all) {
    const size = Buffer.byteLength(JSON.stringify(each)) + 1;
    const last = batches.at(-1);
    if (last === undefined || last.length === max || bytes + size > requestBytesMax) {
      batches.push([each]);
      bytes = size;
    } else {
      last.push(each);
      bytes += size;
    }
  }
  return batches;
}

/** The list of a text that holds a request, a list, or one JSON object in each line. */
export function parseBatch(field: string, text: string, isFile: boolean): JsonMessage {
  const whole = tryParse(text);
  if (Array.isArray(whole)) return { [field]: whole };
  const isLine = isJsonObject(whole) && !(field in whole);
  if (whole !== undefined && !isLine) return whole as JsonMessage;
  const lines = text.split("\n").map((line, i) => ({ line, name: `line ${i + 1} of --data` }));
  const filled = lines.filter(({ line }) => line.trim() !== "");
  return { [field]: filled.map(({ line, name }) => parseLine(name, line, isFile)) };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parseLine(name: string, line: string, isFile: boolean): unknown {
  // For a file whose name lacks the @ in front, the message says so.
  const value = isFile ? tryParse(line) : parseJsonText(name, line);
  if (isJsonObject(value)) return value;
  throw new UsageError(`${name} must be ${value === undefined ? "JSON" : "a JSON object"}`);
}
