/**
 * Loads that take long: a device that does not end in time is refused like any other, and a load that is not wanted any more is given up.
 * The CPU plays the device (native/src/core/rehearsal.rs).
 */
import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import { openEngine } from "../../src/engine/native.ts";
import { Problem } from "../../src/std/problem.ts";
import { bundleOf, emptyDir } from "../bundle/built.ts";
import { Opened, ok } from "./opened.ts";
import { type Rehearsal, rehearse } from "./wrong-provider.ts";

/** Longer than any test. */
const NEVER_MS = 600_000;
const CUDA = "cuda:0";

afterEach(async () => await rehearse());

test("a provider that compiles for too long is refused with its reason, the next is tried, and its late result harms nothing", async () => {
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  await rehearse({ device: "tensorrt:0", opens_ms: 1_000, open_ms_max: 50 }, { device: CUDA });
  for (const name of ["molmoact2-yam", "dreamzero-astra-yam"]) {
    const late = await Opened.with(engine, await bundleOf(name), { device: "auto", slots: 2 });
    expect(late.model).toMatchObject({
      device: CUDA,
      refused: [{ device: "tensorrt:0", reason: "its graphs were not open after 50 ms" }],
    });
    const before = await late.episode();
    // The thread that was left behind ends meanwhile.
    await Bun.sleep(1_200);
    const after = await late.episode(1);
    expect(after.map(({ chunk }) => [...chunk.actions])).toEqual(before.map(({ chunk }) => [...chunk.actions]));
    expect(late.model.lost).toEqual([]);
  }
  await engine.close();
});

const SLOW: readonly (readonly [string, Omit<Rehearsal, "device">])[] = [
  ["opens its graphs", { opens_ms: NEVER_MS }],
  ["computes its first inference", { hangs: true }],
];

for (const [what, slow] of SLOW) {
  test(`a load is given up while its device ${what}: the engine closes without it`, async () => {
    const engine = ok(await openEngine({ decodeThreads: 2 }));
    await rehearse({ device: CUDA, ...slow });
    const bundle = await bundleOf("molmoact2-yam");
    const options = { bundle, replicas: 2, slots: undefined, threads: 1 } as const;
    const loads = [CUDA, "auto"].map((device) => engine.load({ ...options, device }));
    await Bun.sleep(300);
    await engine.close();
    for (const load of loads) {
      const loaded = await load;
      expect(loaded instanceof Problem && loaded.message).toContain("the load was given up");
    }
  });
}

/** `serve` in a process whose device takes for ever to open. */
const SERVE = `
  const { rehearse } = await import("./test/engine/wrong-provider.ts");
  await rehearse({ device: "${CUDA}", opens_ms: ${NEVER_MS} });
  process.argv = ["bun", "tendon", "serve", "--dev", "--json", "--port", process.env.PORT];
  await import("./src/main.ts");
`;

test("SIGTERM while models are loading ends the service in order, with the exit code of a normal stop", async () => {
  const free = Bun.serve({ port: 0, fetch: () => new Response() });
  const { port } = free;
  await free.stop(true);
  const env = { ...process.env, HOME: await emptyDir(), TENDON_OPS_ADDR: "127.0.0.1:0", PORT: String(port) };
  const cwd = join(import.meta.dir, "../..");
  await using child = Bun.spawn([process.execPath, "-e", SERVE], { cwd, env, stdout: "ignore", stderr: "pipe" });
  const readiness = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      (answer) => answer.text(),
      () => "",
    );
  while (!(await readiness()).includes("is loading")) await Bun.sleep(20);
  child.kill("SIGTERM");
  const said = await child.stderr.text();
  expect([await child.exited, said.includes("shutdown cut short")]).toEqual([0, false]);
});
