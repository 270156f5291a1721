/** `tendon serve` as a process: what it prints, how it ends. Uses the library and the bundle that `npm run setup` made. */
import { expect, test } from "bun:test";
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { childEnvironment } from "../../src/config.ts";
import { temporaryFolder } from "../store/temporary.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");

interface Ended {
  exit: number;
  out: string;
  err: string;
}

/** Starts `tendon` with a home of its own, every port free. */
function tendon(home: string, words: readonly string[], env: Record<string, string> = {}) {
  return Bun.spawn([process.execPath, MAIN, ...words], {
    env: childEnvironment({
      HOME: home,
      XDG_CONFIG_HOME: "",
      XDG_DATA_HOME: "",
      TENDON_OPS_ADDR: "127.0.0.1:0",
      ...env,
    }),
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function ended(home: string, words: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const child = tendon(home, words, env);
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { exit: await child.exited, out, err };
}

interface Ready {
  event: string;
  url: string;
  ops_url: string;
  models: string[];
  llm: string[];
  reference: string[];
  account: string;
  api_key: string;
}

async function served(home: string): Promise<{ child: ReturnType<typeof tendon>; ready: Ready }> {
  const child = tendon(home, ["serve", "--dev", "--json", "--port", "0"]);
  const reader = child.stdout.getReader();
  let line = "";
  while (!line.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(await child.stderr.text());
    line += new TextDecoder().decode(value);
  }
  reader.releaseLock();
  return { child, ready: JSON.parse(line) };
}

test("the first line says that it is ready; SIGTERM ends it with exit 0; the key stays the same", async () => {
  await using home = await temporaryFolder();
  const first = await served(home.path);
  const { ready } = first;
  expect(ready).toMatchObject({ event: "ready", models: ["vendorB/molmoact2:yam"], llm: [] });
  const describe = (key: string) =>
    fetch(`${ready.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: ready.models[0], messages: [{ role: "user", content: "what are you?" }] }),
    });
  const [health, readiness, metrics, answer] = await Promise.all([
    fetch(`${ready.url}/healthz`),
    fetch(`${ready.url}/readyz`),
    fetch(`${ready.ops_url}/metrics`),
    describe(ready.api_key),
  ]);
  expect([health.status, readiness.status, metrics.status, answer.status]).toEqual([200, 200, 200, 200]);
  expect(answer.headers.get("x-tendon-bundle")).toBe("reference");

  const second = await ended(home.path, ["serve", "--dev", "--port", "0"]);
  expect(second).toMatchObject({ exit: 2, out: "", err: expect.stringContaining(`process ${first.child.pid}`) });

  first.child.kill("SIGTERM");
  expect(await first.child.exited).toBe(0);

  const credentials = join(home.path, ".config/tendon/credentials.json");
  expect(JSON.parse(await readFile(credentials, "utf8"))).toEqual({ base_url: ready.url, api_key: ready.api_key });
  expect([
    (await stat(credentials)).mode & 0o777,
    (await stat(join(home.path, ".local/share/tendon"))).mode & 0o777,
  ]).toEqual([0o600, 0o700]);

  const again = await served(home.path);
  expect([again.ready.api_key, again.ready.account]).toEqual([ready.api_key, ready.account]);
  again.child.kill("SIGKILL");
  await again.child.exited;
  const afterKill = await served(home.path);
  afterKill.child.kill("SIGINT");
  expect(await afterKill.child.exited).toBe(0);
});

test("each wrong start is one clear line on standard error with its exit code, never a stack", async () => {
  await using home = await temporaryFolder();
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", reusePort: false, fetch: () => new Response() });
  const empty = join(home.path, "empty");
  await mkdir(empty);
  const port = ["--port", "0"];
  const cases: [words: string[], env: Record<string, string>, exit: number, says: string][] = [
    [["serve", "--prot", "1"], {}, 2, "unknown option '--prot'"],
    [["serve", "extra"], {}, 2, "unexpected argument 'extra'"],
    [["serve", "--port", "x"], {}, 2, "--port must be a whole number"],
    [["serve", "--dev", "--port", String(taken.port)], {}, 1, "the port is taken"],
    [["serve", "--dev", ...port], { TENDON_OPS_ADDR: `127.0.0.1:${taken.port}` }, 1, "the port is taken"],
    [["serve", "--dev", ...port, "--models", join(home.path, "none")], {}, 1, "cannot be read"],
    [["serve", "--dev", ...port, "--models", empty], {}, 1, "holds no bundle"],
    [["serve", ...port], {}, 2, "allow_reference"],
    [["serve", "--dev", ...port, "--data", "/proc/tendon"], {}, 2, "the data folder cannot be used"],
    [["serve", ...port], { TENDON_FAULTS: "slow_model" }, 2, "TENDON_FAULTS"],
    [["srve"], {}, 2, "did you mean 'serve'"],
  ];
  for (const [words, env, exit, says] of cases) {
    const result = await ended(home.path, words, env);
    expect([words, result]).toEqual([words, { exit, out: "", err: expect.stringContaining(says) }]);
    expect(result.err.trim().split("\n")).toHaveLength(1);
  }
  await taken.stop(true);
});

test("--help and --version", async () => {
  await using home = await temporaryFolder();
  const help = await ended(home.path, ["--help"]);
  for (const name of ["serve", "act", "sample", "models", "doctor", "bundle", "bench"])
    expect(help.out).toContain(name);
  expect([help.exit, help.err]).toEqual([0, ""]);
  expect((await ended(home.path, ["serve", "--help"])).out).toContain("--port N");
  expect((await ended(home.path, ["--version"])).out).toMatch(/^tendon \d+\.\d+\.\d+\n$/);
  expect(await ended(home.path, [])).toMatchObject({ exit: 2, out: "", err: expect.stringContaining("Usage: tendon") });
});
