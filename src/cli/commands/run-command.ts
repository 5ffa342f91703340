import { type Command, type CommandGroup, groups } from "../../../gen/latchkey/v1/commands.ts";
import { createProgress } from "../progress.ts";
import { buildRequest } from "./build-request.ts";
import { type Call, callAllPages, openCall } from "./call-method.ts";
import { CommandError, type ExitCode, exitCodes, UsageError } from "./command-error.ts";
import { cleartextWarning, readConnection } from "./connection.ts";
import { fieldsOf, kebabCase } from "./flags.ts";
import { commandHelp, groupHelp } from "./help.ts";
import { callInBatches, hasError } from "./import-in-batches.ts";
import { suggest } from "./nearest-name.ts";
import { type CommandLine, parseCommandLine } from "./parse-command-line.ts";
import { type Printed, printAnswer } from "./print-answer.ts";
import { printBatch } from "./print-batch.ts";
import { processInput as input } from "./read-input.ts";
import { printable, type Screen, screenOf } from "./screen.ts";
import type { Json } from "./set-field.ts";

/** Runs `latchkey GROUP COMMAND …`: a call of one method. */
export async function runCommand(group: CommandGroup, args: readonly string[]): Promise<ExitCode> {
  const [name, ...rest] = args;
  if (name === undefined || name === "--help" || name === "-h") {
    const help = `${groupHelp(group)}\n`;
    (name === undefined ? process.stderr : process.stdout).write(help);
    return name === undefined ? exitCodes.usage : exitCodes.done;
  }
  const command = group.commands.find((each) => each.name === name);
  if (command === undefined) {
    if (name.startsWith("-")) throw new UsageError(`flags follow the command: latchkey ${group.name} COMMAND …`);
    const names = group.commands.map((each) => each.name);
    throw new UsageError(`latchkey ${group.name} has no command ${JSON.stringify(name)}${suggest(name, names)}`);
  }
  try {
    return await callCommand(group, command, rest);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const path = `latchkey ${group.name} ${command.name}`;
    throw new UsageError(`${path}: ${error.message}\n${path} --help tells how it is used`);
  }
}

export function findGroup(name: string): CommandGroup | undefined {
  return groups.find((group) => group.name === name);
}

async function callCommand(group: CommandGroup, command: Command, args: readonly string[]): Promise<ExitCode> {
  const line = parseCommandLine(command, args);
  if (line.wantsHelp) {
    process.stdout.write(`${commandHelp(group, command)}\n`);
    return exitCodes.done;
  }
  const request = await buildRequest(command, line.request, input);
  const connection = readConnection(line, process.env);
  const call = openCall(group, command, connection, line);
  await completeRequest(command, request);
  await confirmDeletion(group, command, request, line.isSure);
  const warning = cleartextWarning(connection);
  if (warning !== undefined) process.stderr.write(`${warning}\n`);
  const answer = await answerOf(command, call, request, line);
  const screen = screenOf(process.stdout, process.env);
  const { stdout, stderr } = line.wantsJson
    ? printJson(answer, screen)
    : describeAnswer(command, request, answer, screen);
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  return isRefused(command, answer) ? exitCodes.refused : exitCodes.done;
}

/** The answer of one call, or of several that are told as one. */
function answerOf(command: Command, call: Call, request: Json, line: CommandLine): Promise<Json> {
  if (command.batch !== undefined) {
    const hasIdempotencyKey = line.idempotencyKey !== undefined;
    return callInBatches(command, call, request, { progress: createProgress(process.stderr), hasIdempotencyKey });
  }
  const isList = command.items !== undefined && line.wantsAllPages;
  return isList ? callAllPages(call, command.items, request) : call(request);
}

/** Asks for a secret that is needed, and refuses a request that lacks another field. */
async function completeRequest({ request: message, batch }: Command, request: Json): Promise<void> {
  for (const { name, isRequired, isSecret } of fieldsOf(message)) {
    if (!isRequired || name in request) continue;
    if (!isSecret) {
      const how = name === batch?.field ? " or --data @FILE" : "";
      throw new UsageError(`--${kebabCase(name)}${how} is needed`);
    }
    const secret = await input.readSecret(`${name} (not shown): `);
    if (secret === "") throw new UsageError(`--${kebabCase(name)} @FILE is needed, or the ${name} on standard input`);
    request[name] = secret;
  }
}

async function confirmDeletion(group: CommandGroup, command: Command, request: Json, isSure: boolean): Promise<void> {
  if (!command.isDeletion || isSure) return;
  const what = `${capitalise(command.name)} ${operandOf(command, request)} (${group.name})`;
  const answer = await input.confirm(`${what} for ever?`);
  if (answer === undefined) throw new UsageError("there is nobody to ask: --yes says that you are sure");
  if (!answer) throw new CommandError("nothing was done");
}

/** What the command is about, which may come from a file. */
function operandOf({ operand = "" }: Command, request: Json): string {
  return printable(String(request[operand] ?? ""));
}

/** For a script in one line, for people in several, in which nothing controls their terminal. */
function printJson(answer: Json, { columns }: Screen): Printed {
  if (columns === undefined) return { stdout: `${JSON.stringify(answer)}\n`, stderr: "" };
  const lines = JSON.stringify(answer, null, 2).split("\n");
  return { stdout: lines.map((line) => `${printable(line)}\n`).join(""), stderr: "" };
}

function describeAnswer(command: Command, request: Json, answer: Json, screen: Screen): Printed {
  if (command.isDeletion) return { stdout: `${command.name}d ${operandOf(command, request)}\n`, stderr: "" };
  return command.batch === undefined ? printAnswer(command, answer, screen) : printBatch(command, answer, screen);
}

function isRefused({ outcome, batch }: Command, answer: Json): boolean {
  if (batch !== undefined) return (answer[batch.results] as unknown[]).some(hasError);
  return outcome !== undefined && answer[outcome] === false;
}

function capitalise(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
