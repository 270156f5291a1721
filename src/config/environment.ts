/** The only reader of the process' environment variables. */

export type Environment = Readonly<Record<string, string | undefined>>;

export function environment(): Environment {
  return process.env;
}

/** The environment of a child process of ours: this one's without the settings of any service, and `changes`. */
export function childEnvironment(
  changes: Readonly<Record<string, string>>,
  env: Environment = environment(),
): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^(TENDON_|DATABASE_URL$|REDIS_URL$)/.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), ...changes };
}

/** `all`: a test that would be skipped because something is not installed fails instead. */
export function testRequirement(env: Environment = environment()): "all" | "none" {
  return env.TENDON_TEST_REQUIRE === "all" ? "all" : "none";
}
