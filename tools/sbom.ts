import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type BundledPackage, findBundledPackages } from "./third-party-licences.ts";

/** A package of ours as it is packed. */
export interface Contents {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly type: "application" | "library";
  /** The source files that its scripts were made of, from the root of the repository. */
  readonly bundled: readonly string[];
  /** Files of others that it ships as they are, with their licence. */
  readonly files: readonly { readonly path: string; readonly bytes: Buffer; readonly license: string }[];
}

/**
 * What is inside a package, in the form of CycloneDX 1.6. It has no serial number and no time, so that a second run makes
 * the same file. The hash of a component is that of its own package, from package-lock.json.
 */
export function describeContents(root: string, contents: Contents): object {
  const { name, version, license, type, bundled, files } = contents;
  const ref = purlOf({ name, version });
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;
  const components = [
    ...findBundledPackages(root, bundled).map((found) => describeDependency(found, lock)),
    ...files.map((file) => ({
      type: "file",
      "bom-ref": `${ref}#${file.path}`,
      name: file.path,
      hashes: [{ alg: "SHA-256", content: createHash("sha256").update(file.bytes).digest("hex") }],
      licenses: licencesOf(file.license),
    })),
  ];
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: { type, "bom-ref": ref, name, version, purl: ref, licenses: licencesOf(license) },
    },
    components,
    dependencies: [{ ref, dependsOn: components.map((component) => component["bom-ref"]) }],
  };
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
}

/** Throws where what is installed is not what package-lock.json names: the hash would be another package's. */
function describeDependency({ folder, name, version, license }: BundledPackage, lock: Lock) {
  const locked = lock.packages[folder];
  const [, hash] = /^sha512-(\S+)$/.exec(locked?.integrity ?? "") ?? [];
  if (locked?.version !== version || hash === undefined) {
    throw new Error(`package-lock.json does not have ${name} ${version} with its sha512: run \`npm ci\``);
  }
  const purl = purlOf({ name, version });
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    hashes: [{ alg: "SHA-512", content: Buffer.from(hash, "base64").toString("hex") }],
    licenses: licencesOf(license),
  };
}

function purlOf({ name, version }: { readonly name: string; readonly version: string }): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** Several licences are an expression (`MIT OR Apache-2.0`), a single one is named by its id. */
function licencesOf(license: string): object[] {
  return [/ /.test(license) ? { expression: license } : { license: { id: license } }];
}
