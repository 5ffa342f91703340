import { suggest } from "../../domain/suggest.ts";
import { kebabCase } from "../parse-arguments.ts";
import { createProgress } from "../progress.ts";
import { buildRequest } from "./build-request.ts";
import { itemsOf, type MethodCall, openCall } from "./call-method.ts";
import { CommandError, type ExitCode, exitCodes, UsageError } from "./command-error.ts";
import { type Connection, cleartextWarning, readConnection } from "./connection.ts";
import { requestFieldsOf } from "./flags.ts";
import { type CliCommand, type CommandGroup, groups } from "./groups.ts";
import { commandHelp, groupHelp } from "./help.ts";
import { callInBatches, hasError } from "./import-in-batches.ts";
import { isForAllApis, listForAllApis } from "./list-all-apis.ts";
import { type CommandLine, parseCommandLine } from "./parse-command-line.ts";
import { operandOf, printOutput } from "./print-output.ts";
import { processInput as input } from "./read-input.ts";
import { screenOf } from "./screen.ts";
import type { JsonMessage } from "./set-field.ts";

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

async function callCommand(group: CommandGroup, command: CliCommand, args: readonly string[]): Promise<ExitCode> {
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
  const { answer, isCut } = isForAllApis(command, request)
    ? await listForAllApis({ listApis: openListApis(connection, line), listKeys: call }, request, line.wantsAllPages)
    : { answer: await answerOf(command, call, request, line), isCut: false };
  const { format, columns } = line.output;
  const screen = screenOf(process.stdout, process.env);
  const { stdout, stderr } = printOutput(format, { command, request, answer, columns, screen });
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  if (isCut) process.stderr.write("There is more: --all for everything, --api-id for the keys of one API.\n");
  return isRefused(command, answer) ? exitCodes.refused : exitCodes.done;
}

function openListApis(connection: Connection, line: CommandLine): MethodCall {
  const group = findGroup("apis") as CommandGroup;
  return openCall(group, group.commands.find(({ method }) => method === "listApis") as CliCommand, connection, line);
}

/** The answer of one call, or of several that are printed as one. */
async function answerOf(
  command: CliCommand,
  call: MethodCall,
  request: JsonMessage,
  line: CommandLine,
): Promise<JsonMessage> {
  if (command.batch !== undefined) {
    const hasIdempotencyKey = line.idempotencyKey !== undefined;
    return callInBatches(command, call, request, { progress: createProgress(process.stderr), hasIdempotencyKey });
  }
  const { items } = command;
  if (items === undefined || !line.wantsAllPages) return call(request);
  const found: JsonMessage[] = [];
  for await (const item of itemsOf(call, items, request)) found.push(item);
  return { [items]: found };
}

/** Asks for a secret that is needed, and refuses a request that lacks another field. */
async function completeRequest(command: CliCommand, request: JsonMessage): Promise<void> {
  for (const { name, isRequired, isSecret } of requestFieldsOf(command)) {
    if (!isRequired || name in request) continue;
    if (!isSecret) {
      const what = name === command.batch?.field ? "FILE" : `--${kebabCase(name)}`;
      throw new UsageError(`${what} is needed`);
    }
    const secret = await input.readSecret(`${name} (not shown): `);
    if (secret === "") throw new UsageError(`--${kebabCase(name)} @FILE is needed, or the ${name} on standard input`);
    request[name] = secret;
  }
}

async function confirmDeletion(group: CommandGroup, command: CliCommand, request: JsonMessage, isSure: boolean) {
  if (!command.isDeletion || isSure) return;
  const verb = command.name.charAt(0).toUpperCase() + command.name.slice(1);
  const what = `${verb} ${operandOf(command, request)} (${group.name})`;
  const answer = await input.confirm(`${what} for ever?`);
  if (answer === undefined) throw new UsageError("there is nobody to ask: --yes says that you are sure");
  if (!answer) throw new CommandError("nothing was done");
}

function isRefused({ outcome, batch }: CliCommand, answer: JsonMessage): boolean {
  if (batch !== undefined) return (answer[batch.results] as unknown[]).some(hasError);
  return outcome !== undefined && answer[outcome] === false;
}
