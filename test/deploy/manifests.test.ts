import { describe, expect, it } from "vitest";
import { readSettings } from "../../src/config/settings.ts";
import { variables } from "../../src/config/variables.ts";
import { createProbes } from "../../src/rpc/probes.ts";
import { Readiness } from "../../src/rpc/readiness.ts";
import { identityOf, makeCertificate } from "../support/make-certificate.ts";
import { readText } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { composeWorkloads, kubernetesObjects, kubernetesWorkloads, readCompose, readDockerfile } from "./manifests.ts";

/** What the service needs after the drain: see `shutdownGraceMs`. */
const afterDrainSeconds = 10;
const workloads = [...composeWorkloads(), ...kubernetesWorkloads()];

/** Files as whoever follows the comments would have made them. */
function secretText(path: string): string {
  const { certPem, keyPem } = identityOf(makeCertificate(tempFolder(), "coordinator"));
  const texts: Record<string, string> = {
    "database-url": "postgres://latchkey:password@postgres:5432/latchkey",
    "redis-url": "redis://redis:6379",
    "root-key": "0123456789abcdef0123456789abcdef",
    "internal-secret": "0123456789abcdef0123456789abcdef",
    "tls.crt": certPem,
    "ca.crt": certPem,
    "tls.key": keyPem.reveal(),
  };
  return texts[path.split("/").at(-1) ?? ""] ?? expect.fail(`nothing is known of ${path}`);
}

describe.each(workloads)("$name", ({ environment, ports, secretFiles, stopSeconds }) => {
  const files = Object.values(environment).filter((value) => value.startsWith("/run/secrets/"));
  const pair = new Map<string, string>();
  const readFile = (path: string) => {
    if (!secretFiles.includes(path)) throw Object.assign(new Error(path), { code: "ENOENT" });
    const known = pair.get(path) ?? secretText(path);
    pair.set(path, known);
    return known;
  };

  it("has settings that a start takes, from files that the secrets bring", () => {
    if (files.some((path) => path.endsWith("tls.crt"))) {
      const { certPem, keyPem } = identityOf(makeCertificate(tempFolder(), "coordinator"));
      const folder = files.find((path) => path.endsWith("tls.crt"))?.replace("tls.crt", "") ?? "";
      pair.set(`${folder}tls.crt`, certPem).set(`${folder}tls.key`, keyPem.reveal());
    }
    const { settings, warnings } = readSettings(environment, readFile);
    expect(warnings).toEqual([]);
    const portsOf = [settings.port, settings.internalPort];
    expect(ports.filter((port) => !portsOf.includes(port))).toEqual([]);
    expect(
      secretFiles.filter((file) => !files.includes(file)),
      "secrets that nothing reads",
    ).toEqual([]);
    expect(stopSeconds * 1000).toBeGreaterThanOrEqual(settings.drainMs + afterDrainSeconds * 1000);
  });

  it("names settings of ours only", () => {
    const known = Object.values(variables).flatMap(({ name }) => [name, `${name}_FILE`]);
    const others = Object.keys(environment).filter((name) => !known.includes(name));
    expect(others.filter((name) => name !== "NODE_DISABLE_COMPILE_CACHE")).toEqual([]);
  });
});

describe("the manifests of Kubernetes", () => {
  const objects = kubernetesObjects();
  const pods = objects.filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet");
  const inFile = (file: string) => pods.filter((pod) => pod.file === file);
  const probePaths = [...createProbes(new Readiness()).keys()];

  it.each(pods.map((pod) => [`${pod.file} ${pod.metadata.name}`, pod] as const))(
    "%s probes what there is",
    (_, pod) => {
      const [container] = pod.spec.template.spec.containers;
      for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
        expect(probePaths).toContain(container[probe].httpGet.path);
        const names = (container.ports as { name: string }[]).map(({ name }) => name);
        expect(names).toContain(container[probe].httpGet.port);
      }
      expect(container.readinessProbe.httpGet.path).toBe("/readyz");
      expect(container.livenessProbe.httpGet.path, "or an outage of Postgres would restart all").toBe("/livez");
    },
  );

  it.each(pods.map((pod) => [`${pod.file} ${pod.metadata.name}`, pod] as const))(
    "%s runs as the image's user, with a file system that is read-only",
    (_, pod) => {
      const { securityContext, containers, volumes } = pod.spec.template.spec;
      const { user, volume } = readDockerfile();
      expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: user.uid, runAsGroup: user.gid });
      expect(securityContext.fsGroup, "or it could not read its secrets").toBe(user.gid);
      expect(containers[0].securityContext).toMatchObject({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
      const mounted = Object.fromEntries(
        (containers[0].volumeMounts as { name: string; mountPath: string }[]).map(({ name, mountPath }) => [
          mountPath,
          name,
        ]),
      );
      expect(Object.keys(mounted)).toContain(volume);
      for (const name of Object.values(mounted)) expect(volumes).toContainEqual(expect.objectContaining({ name }));
    },
  );

  it("have services and budgets that select pods of the same file", () => {
    const selecting = objects.filter(({ kind }) => kind === "Service" || kind === "PodDisruptionBudget");
    expect(selecting.length).toBeGreaterThan(4);
    for (const { file, spec, metadata } of selecting) {
      const { app } = spec.selector.matchLabels ?? spec.selector;
      const selected = inFile(file).find((pod) => pod.spec.template.metadata.labels.app === app);
      expect(selected, `${file} ${metadata.name}`).toBeDefined();
      for (const { targetPort } of spec.ports ?? []) {
        const names = selected?.spec.template.spec.containers[0].ports.map(({ name }: { name: string }) => name);
        expect(names).toContain(targetPort);
      }
    }
    for (const pod of pods) {
      expect(pod.spec.selector.matchLabels).toEqual(pod.spec.template.metadata.labels);
      expect(pod.spec.replicas, "more than its budget keeps").toBeGreaterThan(1);
    }
  });

  it("name every coordinator by the address that its service gives it", () => {
    const [set] = objects.filter(({ kind }) => kind === "StatefulSet");
    const edge = kubernetesWorkloads().find(({ environment }) => environment.LATCHKEY_ROLE === "edge");
    const name = set?.metadata.name;
    const addresses = Array.from(
      { length: set?.spec.replicas },
      (_, i) => `https://${name}-${i}.${set?.spec.serviceName}:8081`,
    );
    expect(edge?.environment.LATCHKEY_COORDINATORS).toBe(addresses.join());
    const service = objects.find(({ kind, metadata }) => kind === "Service" && metadata.name === set?.spec.serviceName);
    expect(service?.spec).toMatchObject({ clusterIP: "None", ports: [{ port: 8081 }] });
  });
});

describe("the compose file", () => {
  const { services, secrets, volumes } = readCompose();

  it("names secrets and volumes that are there, and makes the file system read-only", () => {
    for (const [name, service] of Object.entries(services)) {
      for (const secret of service.secrets ?? []) expect(Object.keys(secrets), name).toContain(secret);
      for (const volume of service.volumes ?? []) {
        const [source = ""] = volume.split(":");
        if (!source.startsWith("./")) expect(Object.keys(volumes), name).toContain(source);
      }
      if (name.startsWith("latchkey")) expect(service.read_only).toBe(true);
    }
  });

  it("has a server in nginx's configuration for each replica, and publishes nginx's ports", () => {
    const nginx = readText("deploy/compose/nginx.conf");
    const named = [...nginx.matchAll(/^ +server (\S+):(\d+) /gm)].map(([, host, port]) => `${host}:${port}`);
    const replicas = composeWorkloads().map(({ name, ports }) => `${name.replace("compose ", "")}:${ports[0]}`);
    expect(named, "for JSON and for gRPC").toEqual([...replicas, ...replicas]);
    const listens = [...nginx.matchAll(/^ +listen (\d+)/gm)].map(([, port]) => port);
    expect(services.nginx?.ports?.map((published) => published.split(":").at(-1))).toEqual(listens);
  });
});

it.each([
  ["deploy/docker/Dockerfile", /^# .*-e (LATCHKEY_STORE=existing)/m],
  ["deploy/compose/compose.yaml", /^ +# (LATCHKEY_STORE: existing)$/m],
  ["deploy/kubernetes/latchkey.yaml", /^ +# - \{ name: (LATCHKEY_STORE, value: existing) \}$/m],
  ["deploy/kubernetes/regions.yaml", /^ +# - \{ name: (LATCHKEY_STORE, value: existing) \}$/m],
  ["deploy/systemd/latchkey.service", /^# .*(LATCHKEY_STORE=existing)/m],
])("%s says how to refuse a lost store, and when, and does not refuse the first start", (file, mention) => {
  const text = readText(file);
  const [, setting = ""] = mention.exec(text) ?? [];
  expect(setting).toContain(variables.storeMustExist.name);
  expect(text.match(/LATCHKEY_STORE/g)).toHaveLength(1);
  expect(text, "a first start with a root key of its own leaves an empty store").toContain(
    "# After the first key is created",
  );
});
