import { expect, test } from "bun:test";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { ECHO_WARNING } from "../../src/bundle/describe.ts";
import type { Bundle } from "../../src/bundle/read.ts";
import { ROBOT_DEFAULT, type RobotConfig } from "../../src/config/robot.ts";
import { Catalog } from "../../src/robot/catalog.ts";
import {
  type BegunModel,
  discard,
  loadModels,
  type PlannedModel,
  planModels,
  prepare,
} from "../../src/service/models.ts";
import { Lifecycle } from "../../src/std/lifecycle.ts";
import { Problem } from "../../src/std/problem.ts";
import { emptyDir } from "../bundle/built.ts";
import { ok } from "../engine/opened.ts";
import { FakeEngine } from "../fake-engine.ts";
import { cartesianManifest, manifest, statefulManifest } from "../robot/manifests.ts";
import { CARTESIAN, MODEL, STATEFUL } from "../robot/stage.ts";

const bundle = (facts = manifest()): Bundle => ({ manifest: facts, paths: new Map() });
const config = (robot: Record<string, Partial<RobotConfig>>, dev = false) => ({
  robot: new Map(Object.entries(robot).map(([id, changes]) => [id, { ...ROBOT_DEFAULT, ...changes }])),
  dev,
});
const begun = (engine: Pick<FakeEngine, "load">, planned: readonly PlannedModel[]): BegunModel[] =>
  planned.map((one) => ({ ...one, loaded: engine.load(one) }));
const log = { info: () => {}, error: () => {} };

test("serve without --dev refuses a reference bundle unless the configuration allows it for that model", () => {
  const bundles = [bundle(statefulManifest())];
  expect(planModels(bundles, config({}))).toMatchObject({ exit: 2, message: expect.stringContaining(STATEFUL) });
  expect(planModels(bundles, config({}, true))).toHaveLength(1);
  expect(planModels(bundles, config({ [STATEFUL]: { allowReference: true } }))).toHaveLength(1);
});

test("serve without --dev refuses the device echo as well, unless the configuration allows it for that model", () => {
  const bundles = [bundle(manifest({ reference: false }))];
  const echo = (changes: Partial<RobotConfig> = {}) => ({ [MODEL]: { device: "echo", ...changes } });
  const refused = planModels(bundles, config(echo()));
  if (!(refused instanceof Problem)) throw new Error("not refused");
  expect([refused.exit, refused.message.split(" Start with")[0]]).toEqual([2, `${MODEL}: ${ECHO_WARNING}`]);
  expect(refused.message).toContain("allow_reference = true");
  expect(planModels(bundles, config(echo({ device: ["echo", "echo"] })))).toMatchObject({ exit: 2 });
  expect(planModels(bundles, config(echo(), true))).toHaveLength(1);
  expect(planModels(bundles, config(echo({ allowReference: true })))).toHaveLength(1);
  expect(planModels(bundles, config({}))).toHaveLength(1);
});

test("the cores are divided by the replicas of all models that may run on the processor", () => {
  const bundles = [bundle(), bundle(statefulManifest()), bundle(cartesianManifest())];
  const robot = {
    [MODEL]: { device: "auto", replicas: 2 },
    [STATEFUL]: { device: ["cuda:0", "cpu"] },
    [CARTESIAN]: { device: "cuda:1", replicas: 3 },
  };
  const planned = planModels(bundles, config(robot, true));
  expect(planned).toMatchObject(bundles.map(() => ({ onProcessor: 3 })));
});

test("a configured model without a bundle is a problem that names the nearest id", () => {
  const planned = planModels([bundle()], config({ "vendorB/molmoact:yam": {} }));
  expect(planned).toMatchObject({ exit: 2, message: expect.stringContaining(`did you mean "${MODEL}"`) });
});

test("a configured model without any bundle is a problem, not a fault", () => {
  const planned = planModels([], config({ [MODEL]: {} }));
  expect(planned).toMatchObject({ exit: 2, message: expect.stringContaining("no bundles at all") });
});

test("device, replicas and threads come from the configuration", () => {
  const bundles = [bundle(cartesianManifest()), bundle()];
  const planned = planModels(bundles, config({ [MODEL]: { device: ["echo", "echo"], replicas: 2, threads: 3 } }, true));
  expect(planned).toMatchObject([
    { device: "echo", replicas: 2, threads: 3 },
    { device: "auto", replicas: 1, threads: undefined },
  ]);
});

test("a list of devices has a replica for each; more replicas go through it again, and fewer are refused", () => {
  const placed = (changes: Partial<RobotConfig>) => planModels([bundle()], config({ [MODEL]: changes }, true));
  const list = ["cuda:0", "cuda:1", "cpu"];
  expect(placed({ device: list })).toMatchObject([{ device: list, replicas: 3 }]);
  expect(placed({ device: ["cuda:0", "cpu"], replicas: 5 })).toMatchObject([
    { device: ["cuda:0", "cpu", "cuda:0", "cpu", "cuda:0"], replicas: 5 },
  ]);
  expect(placed({ device: ["cpu"] })).toMatchObject([{ device: "cpu", replicas: 1 }]);
  const refusals: [Partial<RobotConfig>, string][] = [
    [{ device: list, replicas: 2 }, "names 3 devices for 2 replicas; raise replicas"],
    [{ device: ["cpu", "echo"] }, "has 'echo' in a list of devices"],
    [{ device: ["cuda:0", "auto"] }, "has 'auto' in a list of devices"],
  ];
  for (const [changes, text] of refusals) {
    const refused = placed(changes);
    expect(refused).toMatchObject({ exit: 2, message: expect.stringContaining(`[robot."${MODEL}"] ${text}`) });
  }
});

test("a model costs what its configuration says, or else what the built-in one says of it; no other id has a price", async () => {
  const robot = { [MODEL]: { rates: { prompt: 7n, cachedPrompt: 3n, completion: 11n } } };
  const planned = planModels([bundle(), bundle(cartesianManifest())], config(robot));
  if (!Array.isArray(planned)) throw new Error(planned.message);
  const catalog = new Catalog();
  await loadModels(begun(new FakeEngine(), planned), catalog, log, new Lifecycle());
  expect([MODEL, CARTESIAN].map((id) => catalog.models.get(id)?.rates)).toEqual([
    { prompt: 7n, cachedPrompt: 3n, completion: 11n },
    { prompt: 500n, cachedPrompt: 50n, completion: 40_000n },
  ]);
  const dear = { rates: { prompt: 500n, cachedPrompt: 501n, completion: 1n } };
  expect(planModels([bundle()], config({ [MODEL]: dear }))).toMatchObject({
    exit: 2,
    message: expect.stringContaining("cached_prompt_usd_per_mtok is above prompt_usd_per_mtok"),
  });
  const own = { ...manifest(), id: "mine/arm:yam" };
  const unpriced = planModels([bundle(own), bundle({ ...own, id: "mine/arm:b" })], config({}));
  if (Array.isArray(unpriced)) throw new Error("planned without a price");
  expect(unpriced.exit).toBe(2);
  for (const id of ["mine/arm:yam", "mine/arm:b"])
    expect(unpriced.message).toContain(
      `its price is not known; write into tendon.toml, in USD per million:\n[robot."${id}"]\n`,
    );
  expect(planModels([bundle(own)], config({ "mine/arm:yam": robot[MODEL] }))).toMatchObject([
    { rates: robot[MODEL].rates },
  ]);
});

test("the log says where a model runs, and why its flow is run step by step", async () => {
  const planned = planModels([bundle()], config({}));
  if (!Array.isArray(planned)) throw new Error(planned.message);
  const lines: unknown[] = [];
  const told = async (flowReason: string | null) => {
    const engine = new FakeEngine();
    const load = async () => ({ ...engine.model(manifest(), "cuda:0"), flowReason });
    const info = (text: string, facts: unknown) => lines.push({ text, ...(facts as object) });
    await loadModels(begun({ load }, planned), new Catalog(), { ...log, info }, new Lifecycle());
  };
  await told(null);
  await told("it has no latent");
  const loaded = { text: "model loaded", model: MODEL, device: "cuda:0", replicas: 1 };
  expect(lines).toEqual([loaded, { ...loaded, flow: "step by step", because: "it has no latent" }]);
});

test("ids are known at once, models are there once they are warm; a refused model ends the start", async () => {
  const planned = planModels([bundle(), bundle(cartesianManifest())], config({}));
  if (!Array.isArray(planned)) throw new Error(planned.message);
  const engine = new FakeEngine();
  const catalog = new Catalog();
  const loading = loadModels(begun(engine, planned), catalog, log, new Lifecycle());
  expect([catalog.known, catalog.ids, catalog.loading]).toEqual([true, [MODEL, CARTESIAN], [MODEL, CARTESIAN]]);
  expect(await loading).toBeUndefined();
  expect(catalog.loading).toEqual([]);
  const refuses = { load: async () => new Problem("no such device") };
  const refused = begun(Object.assign(new FakeEngine(), refuses), planned);
  expect(await loadModels(refused, new Catalog(), log, new Lifecycle())).toMatchObject({
    message: "no such device",
    exit: 1,
  });
});

test("no load begins before it is told to, and a load has what [gpu] says", async () => {
  const modelsDir = await emptyDir();
  await cp(join(import.meta.dir, "../../dist/models/molmoact2-yam"), join(modelsDir, "one"), { recursive: true });
  const gpu = { precision: "f16" } as const;
  const preparation = prepare({ modelsDir, gpu, robot: new Map(), dev: true, chunkSeconds: 10 });
  const engine = ok(await preparation.engine);
  expect(engine.stats().replicas).toBe(0);
  const [begun] = ok(await preparation.begin());
  if (begun === undefined) throw new Error("nothing was begun");
  const { refused } = ok(await begun.loaded);
  expect(engine.stats().replicas).toBe(1);
  expect(refused.find(({ device }) => device === "cuda:0")?.reason).toContain("precision is not f32");
  await discard(preparation);
});
