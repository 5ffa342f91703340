// Reads what a generated codec must know about a hot method. Refuses what the emitters cannot print faithfully.
import { type DescMethod, type FileRegistry, getOption } from "@bufbuild/protobuf";
import { type HotInput, readInput } from "./read-hot-input.ts";
import { type HotOutput, readOutput } from "./read-hot-output.ts";

export interface HotMethod {
  readonly input: HotInput;
  readonly output: HotOutput;
}

/** Undefined for a method that is not hot. */
export function readHot(method: DescMethod, registry: FileRegistry): HotMethod | undefined {
  const hot = registry.getExtension("latchkey.v1.hot");
  if (!hot || getOption(method, hot) !== true) return undefined;
  return { input: readInput(method.input, registry), output: readOutput(method.output) };
}
