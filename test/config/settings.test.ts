import { describe, expect, it } from "vitest";
import { type Environment, readSettings } from "../../src/config/settings.ts";
import { longEnough, noFiles, problemsOf } from "./problems-of.ts";

describe("settings", () => {
  it("are complete without an environment, and bind to loopback only", () => {
    const { settings, warnings } = readSettings({ PATH: "/usr/bin" }, noFiles);

    expect(warnings).toEqual([]);
    expect(settings).toEqual({
      settingsFile: undefined,
      role: "all",
      host: "127.0.0.1",
      port: 8080,
      tlsCert: undefined,
      tlsKey: undefined,
      tls: undefined,
      corsOrigins: [],
      workers: 1,
      dataDir: "./data",
      databaseUrl: undefined,
      storeMustExist: false,
      databaseConnectionsMax: 10,
      usageLanes: 2,
      usageTimeoutMs: 235,
      redisUrl: undefined,
      redisCa: undefined,
      windowsMax: 1_000_000,
      freeWindowsMax: 1_000_000,
      coordinators: [],
      rootKeys: [],
      generateRootKey: false,
      verifyAuth: "open",
      publicUrl: "",
      apis: "implicit",
      internalHost: "127.0.0.1",
      internalPort: 8081,
      internalSecrets: [],
      internalTlsCert: undefined,
      internalTlsKey: undefined,
      internalTls: undefined,
      internalPrivate: false,
      internalCa: undefined,
      internalClientCa: undefined,
      cacheTtlMs: 60_000,
      cacheKeysMax: 100_000,
      auditDays: 365,
      spendingDays: 400,
      spendingYears: 5,
      callsMax: 10_000,
      connectionsMax: 20_000,
      fastPath: true,
      drainMs: 500,
      logLevel: "info",
      logFormat: "auto",
      logVerifications: "none",
      otlpEndpoint: "",
      otlpTracesEndpoint: "",
      otlpHeaders: undefined,
      serviceName: "latchkey",
      traceRatio: 1,
    });
    expect(Object.isFrozen(settings)).toBe(true);
  });

  it.each([
    ["PORT", "eighty"],
    ["PORT", "-1"],
    ["PORT", "65536"],
    ["PORT", "80.5"],
    ["PORT", "0x50"],
    ["PORT", " 80"],
    ["LATCHKEY_INTERNAL_PORT", "1e3"],
    ["HOST", "  "],
    ["HOST", "localhost:8080"],
    ["HOST", "127.0.0.1:8080"],
    ["HOST", "[::1]"],
    ["HOST", "http://localhost"],
    ["PORT", "8081"],
    ["LATCHKEY_INTERNAL_HOST", "localhost:8081"],
    ["LATCHKEY_DATA_DIR", " "],
    ["LATCHKEY_INTERNAL_HOST", "\t"],
    ["LATCHKEY_CACHE_TTL_MS", "86400001"],
    ["LATCHKEY_CACHE_KEYS_MAX", "0"],
    ["LATCHKEY_DRAIN_MS", "600001"],
    ["LATCHKEY_LOG_LEVEL", "loud"],
    ["LATCHKEY_FAST_PATH", "yes"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318"],
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://user:password@127.0.0.1:4318/v1/traces"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "a-token-alone"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "x-token=%zz"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "x token=1"],
    ["OTEL_SERVICE_NAME", " "],
    ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
    ["OTEL_TRACES_SAMPLER_ARG", "half"],
    ["LATCHKEY_APIS", "strict"],
    ["LATCHKEY_STORE", "new"],
    ["LATCHKEY_CORS_ORIGINS", "*"],
    ["LATCHKEY_CORS_ORIGINS", "https://*.example.com"],
    ["LATCHKEY_CORS_ORIGINS", "https://app.example.com/path"],
    ["LATCHKEY_PUBLIC_URL", "keys.example.com"],
    ["LATCHKEY_PUBLIC_URL", "https://user:s3cr3t@keys.example.com"],
    ["LATCHKEY_PUBLIC_URL", "https://keys.example.com/?a=b"],
    ["LATCHKEY_ROOT_KEY", "s3cr3t-but-short"],
    ["LATCHKEY_ROOT_KEY", `${longEnough},s3cr3t-but-short`],
    ["LATCHKEY_ROOT_KEY", `${longEnough},`],
    ["LATCHKEY_ROOT_KEY", "s3cr3t-".repeat(586)],
    ["LATCHKEY_ROOT_KEY", `${longEnough},${longEnough},${longEnough}`],
    ["LATCHKEY_ROOT_KEY", `${longEnough} with spaces`],
    ["LATCHKEY_ROOT_KEY", `${longEnough}\u00e9`],
    ["LATCHKEY_INTERNAL_SECRET", "s3cr3t-but-short"],
    ["DATABASE_URL", "mysql://user:s3cr3t@127.0.0.1/latchkey"],
    ["DATABASE_URL", "s3cr3t"],
    ["LATCHKEY_USAGE_LANES", "0"],
    ["LATCHKEY_DATABASE_CONNECTIONS_MAX", "none"],
    ["REDIS_URL", "http://:s3cr3t@127.0.0.1"],
    ["REDIS_URL", "s3cr3t"],
    ["REDIS_URL", "redis+sentinel://:s3cr3t@127.0.0.1:26379"],
    ["REDIS_URL", "redis+cluster://:s3cr3t@127.0.0.1:6379,"],
    ["LATCHKEY_REDIS_CA", "s3cr3t"],
    ["LATCHKEY_REDIS_CA", "-----BEGIN CERTIFICATE-----\ns3cr3t\n-----END CERTIFICATE-----"],
    ["LATCHKEY_INTERNAL_CA", "s3cr3t"],
    ["LATCHKEY_INTERNAL_PRIVATE", "yes"],
    ["LATCHKEY_INTERNAL_TLS_CERT", " "],
    ["LATCHKEY_INTERNAL_TLS_KEY", " "],
    ["LATCHKEY_WINDOWS_MAX", "0"],
    ["LATCHKEY_FREE_WINDOWS_MAX", "0"],
    ["LATCHKEY_WORKERS", "0"],
    ["LATCHKEY_WORKERS", "65"],
    ["LATCHKEY_WORKERS", "two"],
    ["LATCHKEY_ROLE", "Edge"],
    ["LATCHKEY_ROLE", "edge,coordinator"],
    ["LATCHKEY_COORDINATORS", "10.0.0.1:8081"],
    ["LATCHKEY_COORDINATORS", "10.0.0.1"],
    ["LATCHKEY_COORDINATORS", ":8081"],
    ["LATCHKEY_COORDINATORS", "10.0.0.1:0"],
    ["LATCHKEY_COORDINATORS", "10.0.0.1:65536"],
    ["LATCHKEY_COORDINATORS", "10.0.0.1:80x"],
    ["LATCHKEY_COORDINATORS", "::1:8081"],
    ["LATCHKEY_COORDINATORS", "10.0.0.1:8081,"],
    ["LATCHKEY_COORDINATORS", "10.0.0.1:8081 10.0.0.2:8081"],
    ["LATCHKEY_COORDINATORS", "grpc://10.0.0.1:8081"],
    ["LATCHKEY_COORDINATORS", "https://10.0.0.1:8081/path"],
    ["LATCHKEY_COORDINATORS", "https://user:s3cr3t@10.0.0.1:8081"],
  ])("refuse %s=%j, and name the setting but not its value", (name, value) => {
    const problems = problemsOf({ [name]: value });

    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name} must`));
    expect(problems[0]).not.toContain("s3cr3t");
    expect(problems[0]).not.toContain(longEnough);
  });

  it.each([
    ["PORT", "0", { port: 0 }],
    ["PORT", "65535", { port: 65_535 }],
    ["PORT", "", { port: 8080 }],
    ["HOST", "0.0.0.0", { host: "0.0.0.0" }],
    ["HOST", "fe80::1%eth0", { host: "fe80::1%eth0" }],
    ["HOST", "keys_1.example.com", { host: "keys_1.example.com" }],
    ["LATCHKEY_WORKERS", "64", { workers: 64 }],
    ["LATCHKEY_CACHE_TTL_MS", "0", { cacheTtlMs: 0 }],
    ["LATCHKEY_LOG_LEVEL", "debug", { logLevel: "debug" }],
    ["LATCHKEY_CALLS_MAX", "500", { callsMax: 500 }],
    ["LATCHKEY_CONNECTIONS_MAX", "500", { connectionsMax: 500 }],
    ["LATCHKEY_FAST_PATH", "off", { fastPath: false }],
    ["LATCHKEY_APIS", "explicit", { apis: "explicit" }],
    ["LATCHKEY_STORE", "existing", { storeMustExist: true }],
    ["LATCHKEY_INTERNAL_HOST", "::1", { internalHost: "::1" }],
    ["LATCHKEY_INTERNAL_HOST", "localhost", { internalHost: "localhost" }],
    ["LATCHKEY_INTERNAL_HOST", "127.0.0.2", { internalHost: "127.0.0.2" }],
    ["LATCHKEY_INTERNAL_PRIVATE", "1", { internalPrivate: true }],
  ])("accept %s=%j", (name, value, expected) => {
    expect(readSettings({ [name]: value }, noFiles).settings).toMatchObject(expected);
  });

  it.each([
    ["LATCHKEY_ROOT_KEY", "short", "must be at least 32 characters long"],
    [
      "LATCHKEY_ROOT_KEY",
      `${longEnough},short`,
      "must be at least 32 characters long, both before and after the comma",
    ],
    ["LATCHKEY_ROOT_KEY", "long".repeat(1025), "must be at most 4096 characters long"],
    ["LATCHKEY_INTERNAL_SECRET", "short", "must be at least 32 characters long"],
  ])("speak of two secrets only if %s has two", (name, value, problem) => {
    expect(problemsOf({ [name]: value })).toEqual([`${name} ${problem}`]);
  });

  it("tell of all problems at once", () => {
    const problems = problemsOf({
      PORT: "x",
      LATCHKEY_ROOT_KEY: "short",
      LATCHKEY_INTERNAL_HOST: "0.0.0.0",
      LATCHKEY_INTERNAL_PRIVATE: "1",
      LATCHKEY_LOG_LEVEL: "loud",
      REDIS_URL: "127.0.0.1:6379",
    });

    expect(problems.map((problem) => problem.split(" ")[0]).sort()).toEqual([
      "LATCHKEY_INTERNAL_HOST",
      "LATCHKEY_LOG_LEVEL",
      "LATCHKEY_ROOT_KEY",
      "PORT",
      "REDIS_URL",
    ]);
  });

  it.each(["0.0.0.0", "::", "10.0.0.1", "keys.internal", "127.evil.example"])(
    "keep the internal listener from %s unless it has a secret, and TLS or a private network",
    (LATCHKEY_INTERNAL_HOST) => {
      const noSecret = expect.stringMatching(
        /^LATCHKEY_INTERNAL_HOST must be .* unless LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_CLIENT_CA is set/,
      );
      const cleartext = expect.stringMatching(
        /^LATCHKEY_INTERNAL_HOST must be .* LATCHKEY_INTERNAL_TLS_CERT and .*_KEY\) or .* LATCHKEY_INTERNAL_PRIVATE=1\)/,
      );
      const problemsWith = (others: Environment) => problemsOf({ LATCHKEY_INTERNAL_HOST, ...others });
      expect(problemsWith({})).toEqual([noSecret, cleartext]);
      expect(problemsWith({ LATCHKEY_INTERNAL_SECRET: longEnough })).toEqual([cleartext]);
      expect(problemsWith({ LATCHKEY_INTERNAL_PRIVATE: "1" })).toEqual([noSecret]);
      expect(problemsWith({ LATCHKEY_INTERNAL_PRIVATE: "1", LATCHKEY_INTERNAL_SECRET: longEnough })).toEqual([]);
    },
  );

  const secret = { LATCHKEY_INTERNAL_SECRET: longEnough };
  it("take an edge's coordinators as a list, in any form that names a host and a port", () => {
    const text = "127.0.0.1:8081, [::1]:65535,https://coordinator-1.example:443,http://localhost:1";
    const environment = { LATCHKEY_ROLE: "edge", LATCHKEY_COORDINATORS: text, ...secret };

    expect(readSettings(environment, noFiles).settings).toMatchObject({
      role: "edge",
      coordinators: ["127.0.0.1:8081", "[::1]:65535", "https://coordinator-1.example:443", "http://localhost:1"],
    });
  });

  const database = { DATABASE_URL: "postgres://127.0.0.1/latchkey" };
  const rootKey = { LATCHKEY_ROOT_KEY: longEnough };
  const coordinators = { LATCHKEY_COORDINATORS: "https://10.0.0.1:8081" };
  it.each([
    ["all", {}, []],
    ["all", database, []],
    ["all", { ...database, ...coordinators }, ["LATCHKEY_COORDINATORS must not be set"]],
    ["edge", { ...secret, ...coordinators }, []],
    ["edge", { ...secret, ...coordinators, LATCHKEY_WORKERS: "2" }, []],
    ["edge", { ...secret, ...coordinators, ...database }, ["DATABASE_URL must not be set where the role is edge"]],
    ["edge", { ...secret, ...coordinators, ...rootKey }, ["LATCHKEY_ROOT_KEY must not be set where the role is edge"]],
    ["edge", { ...secret, ...coordinators, LATCHKEY_APIS: "explicit" }, ["LATCHKEY_APIS must not be set"]],
    ["coordinator", { ...secret, ...database, LATCHKEY_APIS: "explicit" }, []],
    ["edge", { ...secret, ...coordinators, LATCHKEY_STORE: "existing" }, ["LATCHKEY_STORE must not be set"]],
    ["coordinator", { ...secret, ...database, LATCHKEY_STORE: "existing" }, []],
    [
      "edge",
      coordinators,
      ["LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_TLS_CERT must be set where the role is edge"],
    ],
    ["edge", secret, ["LATCHKEY_COORDINATORS must name at least one"]],
    ["coordinator", { ...secret, ...database }, []],
    ["coordinator", { ...secret, ...database, ...rootKey }, []],
    [
      "coordinator",
      database,
      ["LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_CLIENT_CA must be set where the role is coordinator"],
    ],
    [
      "coordinator",
      { ...secret, ...database, LATCHKEY_WORKERS: "2" },
      ["LATCHKEY_WORKERS must be 1 where the role is coordinator"],
    ],
    ["coordinator", { ...secret, ...database, ...coordinators }, ["LATCHKEY_COORDINATORS must not be set"]],
    ["coordinator", secret, ["DATABASE_URL must be set where the role is coordinator"]],
  ] as const)("of the role %s with %j have the problems %j", (role, others, problems) => {
    expect(problemsOf({ LATCHKEY_ROLE: role, ...others })).toEqual(
      problems.map((text) => expect.stringContaining(text)),
    );
  });

  it.each(["10.0.0.1:8081", "http://10.0.0.1:8081", "https://10.0.0.1:8081,[fd00::1]:8081", "127.evil.example:8081"])(
    "keep an edge from asking %s in cleartext unless the network is private",
    (LATCHKEY_COORDINATORS) => {
      const edge = { LATCHKEY_ROLE: "edge", ...secret, LATCHKEY_COORDINATORS };
      expect(problemsOf(edge)).toEqual([
        expect.stringMatching(/^LATCHKEY_COORDINATORS must have https:\/\/ .* LATCHKEY_INTERNAL_PRIVATE=1/),
      ]);
      expect(problemsOf({ ...edge, LATCHKEY_INTERNAL_PRIVATE: "1" })).toEqual([]);
    },
  );

  it("count a database whose URL comes from a file as one", () => {
    const environment = { LATCHKEY_ROLE: "coordinator", ...secret, DATABASE_URL_FILE: "/run/secrets/database" };

    expect(problemsOf(environment, () => database.DATABASE_URL)).toEqual([]);
  });

  it("blame a wrong role or address once, and do not guess what it should have been", () => {
    expect(problemsOf({ LATCHKEY_ROLE: "both", ...coordinators })).toEqual([
      "LATCHKEY_ROLE must be one of all, edge, coordinator",
    ]);
    expect(problemsOf({ LATCHKEY_ROLE: "edge", LATCHKEY_COORDINATORS: "nowhere", ...secret })).toEqual([
      expect.stringMatching(/^LATCHKEY_COORDINATORS must be addresses such as 10\.0\.0\.1:8081/),
    ]);
  });

  it("warn of a LATCHKEY_ name they do not know, and of no other", () => {
    const ofClient = { LATCHKEY_URL: "http://127.0.0.1:8080", LATCHKEY_PROFILE: "production" };
    const others = { LATCHKEY_PORT_8080_TCP: "tcp://10.0.0.1", LATCHKEYS: "", OTHER: "x" };
    const { warnings } = readSettings({ ...others, ...ofClient }, noFiles);

    expect(warnings).toEqual(["LATCHKEY_PORT_8080_TCP is not a setting of Latchkey"]);
  });

  it("print no secret, however they are printed", () => {
    const { settings } = readSettings({ LATCHKEY_ROOT_KEY: longEnough }, noFiles);

    expect(settings.rootKeys.map((key) => key.reveal())).toEqual([longEnough]);
    expect(JSON.stringify(settings)).not.toContain(longEnough);
    expect(`${settings.rootKeys}`).not.toContain(longEnough);
  });
});
