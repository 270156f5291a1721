/** How `serve` starts and ends, as a process: what it prints, what it keeps, and each wrong start. */
import { expect, test } from "bun:test";
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import postgres from "postgres";
import { openStore } from "../../src/service/store.ts";
import { Problem } from "../../src/std/problem.ts";
import { funded } from "../account/fake-store.ts";
import { ENGINES } from "../store/engines.ts";
import { PostgresServer } from "../store/postgres-server.ts";
import { money, newCharge } from "../store/rows.ts";
import { Place } from "./program.ts";

const MODELS = [
  "vendorA/dreamzero-astra:yam",
  "vendorB/molmoact2:yam",
  "vendorC/rho:yam",
  "vendorD/isaac-0.5:yam",
  "vendorE/pi0.5:yam",
  "vendorF/picasso:yam",
];

test("the first line says that it is ready; signals end it with exit 0; the key stays the same", async () => {
  await using place = await Place.make();
  const first = await place.serve();
  const { ready } = first;
  expect(ready).toMatchObject({ event: "ready", models: MODELS, llm: [] });
  const question = { model: ready.models[0], messages: [{ role: "user", content: "what are you?" }] };
  const [health, readiness, metrics, answer] = await Promise.all([
    fetch(`${ready.url}/healthz`),
    fetch(`${ready.url}/readyz`),
    fetch(`${ready.ops_url}/metrics`),
    first.post(JSON.stringify(question)),
  ]);
  expect([health.status, readiness.status, metrics.status, answer.status]).toEqual([200, 200, 200, 200]);
  expect(answer.headers.get("x-tendon-bundle")).toBe("reference");
  // What warmed it up is not counted, and it has warmed up.
  const counted =
    (await metrics.text()).match(/^tendon_(engine_\w+_total|requests_total|sessions|start_ms_count)\b.*$/gm) ?? [];
  const others = /^tendon_engine_allocations_total|route="(health|ready|chat)/;
  expect(counted.filter((line) => !others.test(line) && !line.endsWith(" 0"))).toEqual([]);
  expect(counted).toContain("tendon_engine_chunks_run_total 0");
  expect(await first.stop()).toBe(0);
  expect(await first.child.stderr.text()).not.toContain("not warmed up");

  const credentials = join(place.home, ".config/tendon/credentials.json");
  expect(JSON.parse(await readFile(credentials, "utf8"))).toEqual({ base_url: ready.url, api_key: ready.api_key });
  const data = join(place.home, ".local/share/tendon");
  expect([(await stat(credentials)).mode & 0o777, (await stat(data)).mode & 0o777]).toEqual([0o600, 0o700]);

  const again = await place.serve();
  expect([again.ready.api_key, again.ready.account]).toEqual([ready.api_key, ready.account]);
  again.child.kill("SIGKILL");
  await again.child.exited;
  const afterKill = await place.serve();
  afterKill.child.kill("SIGINT");
  expect(await afterKill.child.exited).toBe(0);
}, 30_000);

test("each wrong start is one clear line on standard error with its exit code, never a stack", async () => {
  await using place = await Place.make();
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", reusePort: false, fetch: () => new Response() });
  await mkdir(place.path("empty"));
  await Bun.write(place.path("file"), "x");
  const dev = ["serve", "--dev", "--port", "0"];
  const cases: [words: string[], env: Record<string, string>, code: number, says: string][] = [
    [["serve", "--prot", "1"], {}, 2, "unknown option '--prot'"],
    [["serve", "--port"], {}, 2, "--port"],
    [["serve", "extra"], {}, 2, "unexpected argument 'extra'"],
    [["serve", "--port", "x"], {}, 2, "--port must be a whole number"],
    [["serve", "--dev", "--port", String(taken.port)], {}, 1, "the port is taken"],
    [dev, { TENDON_OPS_ADDR: `127.0.0.1:${taken.port}` }, 1, "the port is taken"],
    [[...dev, "--models", "none"], {}, 1, "cannot be read"],
    [[...dev, "--models", "empty"], {}, 1, "holds no bundle"],
    [[...dev, "--models", "file"], {}, 1, "cannot be read"],
    [["serve", "--port", "0"], {}, 2, "allow_reference"],
    [[...dev, "--data", "/proc/tendon"], {}, 2, "the data folder cannot be used"],
    [["serve", "--port", "0"], { TENDON_FAULTS: "slow_model" }, 2, "TENDON_FAULTS"],
    [["srve"], {}, 2, "did you mean 'serve'"],
  ];
  for (const [words, env, code, says] of cases) {
    const result = await place.run(words, env);
    expect([words, result]).toEqual([words, { code, stdout: "", stderr: expect.stringContaining(says) }]);
    expect(result.stderr.trim().split("\n")).toHaveLength(1);
  }
  await taken.stop(true);
}, 30_000);

test("--version, no command at all, and a key that needs no address", async () => {
  await using place = await Place.make();
  expect((await place.run(["--version"])).stdout).toMatch(/^tendon \d+\.\d+\.\d+\n$/);
  expect(await place.run([])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("Usage: tendon"),
  });
  const environment = { TENDON_BASE_URL: "localhost:1", TENDON_API_KEY: "k" };
  expect(await place.run(["token"], environment)).toEqual({ code: 0, stdout: "k\n", stderr: "" });
});

test("what a dead process held is free before anybody can ask for anything: a start that finds its port taken has given it back", async () => {
  await using place = await Place.make();
  const data = place.path("data");
  const open = async () => {
    const store = await openStore({ dataDir: data, databaseUrl: undefined }, "beside");
    if (store instanceof Problem) throw new Error(store.message);
    return store;
  };
  const dead = await open();
  await dead.accounts.accountAdd(funded("a1", "one@example.org"));
  expect(await dead.charges.hold(newCharge("r", { expiresAt: Number.MAX_SAFE_INTEGER - 1 }))).toBe("held");
  await dead.close();
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", reusePort: false, fetch: () => new Response() });
  const refused = await place.run(["serve", "--dev", "--port", String(taken.port), "--data", data]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("the port is taken")]);
  await taken.stop(true);
  const left = await open();
  expect(await money(left)).toMatchObject({ held: 0n });
  await left.close();
}, 30_000);

for (const { absent, title } of ENGINES.filter(({ name }) => name === "PostgreSQL")) {
  test.skipIf(absent)(
    `${title}: a signal ends a start that waits for another node to bring the schema up to date`,
    async () => {
      await using server = await PostgresServer.start("fsync=off");
      await using place = await Place.make();
      const url = await server.database();
      const other = postgres(url, { max: 1 });
      await other.unsafe("SELECT pg_advisory_lock(7364201905)");
      const child = place.spawn(["serve", "--dev", "--port", "0"], { DATABASE_URL: url });
      const waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
      while ((await other.unsafe(waiting)).length === 0) await Bun.sleep(5);
      child.kill("SIGTERM");
      expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ""]);
      await other.end();
    },
    30_000,
  );
}
