import { stripTypeScriptTypes } from "node:module";
import * as protobuf from "@bufbuild/protobuf";
import { CodeGeneratorRequestSchema } from "@bufbuild/protobuf/wkt";
import * as codecRuntime from "../../src/codec/codec-runtime.ts";
import * as frameWriter from "../../src/codec/frame-writer.ts";
import * as jsonPrinter from "../../src/codec/json-printer.ts";
import * as jsonReader from "../../src/codec/json-reader.ts";
import * as wireReader from "../../src/codec/wire-reader.ts";
import { plugin } from "../../tools/protoc-gen-latchkey.ts";
import { compileTestProtos } from "./test-protos.ts";

export const gadgetsFile = "latchkey/v1/gadgets.proto";

/** A change to make in generated codecs, or in what they are made of. */
export interface Breakage {
  /** A part of the code, and what to put in its place. */
  readonly replace?: readonly [string, string];
  readonly runtime?: Readonly<Record<string, unknown>>;
}

/** The hot methods of gadgets.proto, with codecs as the generator prints them. */
export interface Gadgets {
  readonly takeGadgets: codecRuntime.HotMethod;
  readonly countGadgets: codecRuntime.HotMethod;
}

/** Generates the codecs of gadgets.proto. The function returned loads them, each time anew. */
export function compileGadgets(): (breakage?: Breakage) => Gadgets {
  const { files, registry, found } = compileTestProtos();
  const request = { fileToGenerate: [gadgetsFile], protoFile: [...files] };
  const written = plugin.run(protobuf.create(CodeGeneratorRequestSchema, request)).file;
  const code = stripTypeScriptTypes(found(written.find(({ name }) => name === "latchkey/v1/gadgets_hot.ts")).content);
  const service = found(registry.getService("latchkey.v1.GadgetsService"));
  const schemas = [...registry].flatMap((desc) => (desc.kind === "message" ? [[`${desc.name}Schema`, desc]] : []));
  const modules = { ...protobuf, ...codecRuntime, ...frameWriter, ...jsonPrinter, ...jsonReader, ...wireReader };
  const scope = { ...modules, ...Object.fromEntries(schemas), GadgetsService: service };

  return ({ replace, runtime = {} } = {}) => {
    if (replace !== undefined && !code.includes(replace[0])) throw new Error(`the codecs do not hold ${replace[0]}`);
    const edited = replace === undefined ? code : code.replaceAll(...replace);
    const hotMethods = evaluate(edited, { ...scope, ...runtime });
    const methodOf = (name: string) => found(hotMethods.find(({ method }) => method.localName === name));
    return { takeGadgets: methodOf("takeGadgets"), countGadgets: methodOf("countGadgets") };
  };
}

/** Runs the code of a module with these values in place of its imports. */
function evaluate(code: string, scope: Readonly<Record<string, unknown>>): readonly codecRuntime.HotMethod[] {
  const imported = code.match(/(?<=^import\s*\{)[^}]*(?=\})/gm) ?? [];
  const names = imported.flatMap((list) => list.split(",").map((name) => name.trim())).filter((name) => name !== "");
  const missing = names.filter((name) => scope[name] === undefined);
  if (missing.length > 0) throw new Error(`no value for ${missing.join(", ")}`);
  const body = code.replace(/^import .*$/gm, "").replace("export const hotMethods", "const hotMethods");
  const run = new Function(...names, `"use strict";\n${body}\nreturn hotMethods;`);
  return run(...names.map((name) => scope[name]));
}
