import { describe, expect, it } from "vitest";
import { splitPostgresUrl } from "../../src/domain/postgres-url.ts";

describe("DATABASE_URL", () => {
  it.each([
    ["postgres://host/database", ["postgres://host/database"]],
    ["postgresql://u:p@ss@h:1/d?sslmode=disable", ["postgresql://u:p@ss@h:1/d?sslmode=disable"]],
    ["postgres:///d?host=/run/postgresql", ["postgres:///d?host=/run/postgresql"]],
    ["postgres://u@%2Frun%2Fpg/d", ["postgres://u@%2Frun%2Fpg/d"]],
    ["postgres://u:p@h/d?options=a@b&user=x@y/z", ["postgres://u:p@h/d?options=a@b&user=x@y/z"]],
    ["postgres://u:p%40ss%2Fw%23rd@h/d%40", ["postgres://u:p%40ss%2Fw%23rd@h/d%40"]],
    ["postgres://u:a,b@h/d", ["postgres://u:a,b@h/d"]],
    ["postgres://u:p@a:1,b:2/d?x=1,2", ["postgres://u:p@a:1/d?x=1,2", "postgres://u:p@b:2/d?x=1,2"]],
    ["postgres://a,[::1]:5433,c/d", ["postgres://a/d", "postgres://[::1]:5433/d", "postgres://c/d"]],
    [
      "postgres://a,b/d?target_session_attrs=read-write",
      ["postgres://a/d?target_session_attrs=read-write", "postgres://b/d?target_session_attrs=read-write"],
    ],
  ])("%s names these servers", (text, urls) => {
    expect(splitPostgresUrl(text)).toEqual(urls);
  });

  it.each([
    ["mysql://s3cr3t@h/d", "must be a URL such as"],
    ["postgres://", "must be a URL such as"],
    ["postgres://s3cr3t@a, b/d", "must be a URL such as"],
    ["postgres://u:s3cr3t@a,,b/d", "must have no empty name"],
    ["postgres://u:s3cr3t@a,/d", "must have no empty name"],
    ["postgres://u:s3cr3t@a,b,a/d", "must name each server once"],
    ["postgres://u:s3cr3t@a,b/d?target_session_attrs=any", "must have no target_session_attrs but"],
    ["postgres://u:s3cr3t@a/d?sslmode=disable&target_session_attrs=standby", "must have no target_session_attrs but"],
    ["postgres://u:s3@s3cr3t/w#rd@h/d", "must have special characters of user, password and database percent-encoded"],
    ["postgres://u:s3cr3t/w@h/d", "percent-encoded"],
    ["postgres://u:12/s3cr3t@h/d", "percent-encoded"],
    ["postgres://u:12#s3cr3t@h/d", "percent-encoded"],
    ["postgres://u:12?s3cr3t@h/d", "percent-encoded"],
    ["postgres://u:12?s3cr3t@h/d?sslmode=disable", "percent-encoded"],
    ["postgres://u:s3cr3t@a,b/c@h:1,i:2/d", "percent-encoded"],
  ])("%s is refused, and not repeated", (text, why) => {
    const refusal = (() => {
      try {
        return String(splitPostgresUrl(text));
      } catch (error) {
        return (error as Error).message;
      }
    })();
    expect(refusal).toContain(why);
    expect(refusal).not.toContain("s3cr3t");
  });
});
