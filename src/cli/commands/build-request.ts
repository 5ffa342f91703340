import type { CommandField } from "../../../gen/latchkey/v1/commands.ts";
import { suggest } from "../../domain/suggest.ts";
import type { GivenFlag } from "../parse-arguments.ts";
import { kebabCase } from "../parse-arguments.ts";
import { UsageError } from "./command-error.ts";
import { type Flag, fieldsOfMessage, flagName, flagsOf, requestFieldsOf } from "./flags.ts";
import type { CliCommand } from "./groups.ts";
import { parseBatch } from "./import-in-batches.ts";
import type { CommandLine } from "./parse-command-line.ts";
import { parseJsonText, parseValue } from "./parse-value.ts";
import type { Input } from "./read-input.ts";
import { createFieldSetter, isJsonObject, type JsonMessage } from "./set-field.ts";

/** Makes the request: what `--data` holds, and on top of it what flags and the operand set. */
export async function buildRequest(
  command: CliCommand,
  { operands, flags, data, unset }: CommandLine["request"],
  input: Input,
): Promise<JsonMessage> {
  const request = data === undefined ? {} : await readData(command, data, input);
  const fromOperands = operandsAsFlags(command, operands);
  const twice = fromOperands.find((operand) => flags.some(({ name }) => name === operand.name));
  if (twice !== undefined) throw new UsageError(`--${twice.name} was given twice`);
  const known = flagsOf(command);
  const setField = createFieldSetter(request);
  for (const { name, text } of [...fromOperands, ...flags]) {
    const flag = known.find((each) => each.name === name) as Flag;
    setField(flag, await readValue(flag, text, input));
  }
  for (const name of unset) {
    const field = nullableField(command, name);
    const isSet = flags.some((flag) => flag.name === name || flag.name.startsWith(`${name}.`));
    if (isSet) throw new UsageError(`--unset ${name} and a value for it contradict each other`);
    request[field.name] = null;
  }
  return { ...request, ...command.sets };
}

function operandsAsFlags({ operand, request }: CliCommand, operands: readonly string[]): GivenFlag[] {
  const [first, ...others] = operands;
  if (first === undefined) return [];
  if (operand === undefined) {
    const secret = fieldsOfMessage(request).find(({ isSecret, isRequired }) => isSecret && isRequired);
    throw secret ? secretAsArgument(kebabCase(secret.name)) : new UsageError("it takes flags only, no other arguments");
  }
  if (others.length > 0) throw new UsageError(`it takes one argument without a flag: --${kebabCase(operand)}`);
  return [{ name: kebabCase(operand), text: first }];
}

async function readValue(flag: Flag, text: string | undefined, input: Input): Promise<unknown> {
  const { name, field } = flag;
  if (field.isSecret) {
    if (text === undefined || !/^@./.test(text)) throw secretAsArgument(name);
    const secret = (await input.read(name, text)).trim();
    if (secret === "") throw new UsageError(`--${name} is empty`);
    return secret;
  }
  const isJson = field.type === "object" || field.type === "message";
  return parseValue(name, field, isJson && /^@./.test(text ?? "") ? await input.read(name, text as string) : text);
}

/** Every user of the machine can list the arguments of a process, and shells keep them. */
export function secretAsArgument(name: string): UsageError {
  return new UsageError(
    `--${name} is a secret, and arguments are shown by ps: give --${name} @FILE, or --${name} @- to read it from standard input`,
  );
}

async function readData(command: CliCommand, source: string, input: Input): Promise<JsonMessage> {
  const isFile = /^@./.test(source);
  const text = isFile ? await input.read("data", source) : source;
  const value = command.batch ? parseBatch(command.batch.field, text, isFile) : parseJsonText("--data", text);
  if (!isJsonObject(value)) throw new UsageError("--data must be a JSON object");
  const secret = fieldsOfMessage(command.request).find(({ name, isSecret }) => isSecret && name in value);
  if (secret !== undefined && !isFile) throw secretAsArgument("data");
  return value;
}

function nullableField(command: CliCommand, name: string): CommandField {
  const fields = requestFieldsOf(command).filter(({ canBeNull }) => canBeNull);
  const field = fields.find((each) => flagName([each.name]) === name);
  if (field !== undefined) return field;
  const names = fields.map((each) => flagName([each.name]));
  throw new UsageError(`--unset cannot remove ${name}, but ${names.join(", ")}${suggest(name, names)}`);
}
