/** What the service does before it is ready leaves nothing behind: no record, no money, no counter, no held slot. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { readBundle } from "../../src/bundle/read.ts";
import { openEngine } from "../../src/engine/native.ts";
import { Bodies } from "../../src/http/bodies.ts";
import type { PlannedModel } from "../../src/service/models.ts";
import { warmUp } from "../../src/service/warm-up.ts";
import { Problem } from "../../src/std/problem.ts";
import { fakeStore } from "../account/fake-store.ts";
import { bundleOf, emptyDir } from "../bundle/built.ts";
import { importAct } from "../bundle/import/robots.ts";
import { ok } from "../engine/opened.ts";
import { FakeEngine } from "../fake-engine.ts";
import { cartesianManifest, manifest, statefulManifest, vectorManifest } from "../robot/manifests.ts";
import { place } from "../store/engines.ts";

const never = () => false;

function planned(bundle: PlannedModel["bundle"]): PlannedModel {
  const rates = { prompt: 500n, cachedPrompt: 50n, completion: 40_000n };
  return { bundle, device: "cpu", replicas: 1, slots: undefined, threads: undefined, rates };
}

const plan = (facts = manifest()) => [planned({ manifest: facts, paths: new Map() })];

for (const name of ["molmoact2-yam", "dreamzero-astra-yam"]) {
  test(`after observations of ${name} the engine has counted nothing and the store has no row more`, async () => {
    const engine = ok(await openEngine({ decodeThreads: 2 }));
    const bodies = new Bodies();
    await using at = await place("SQLite");
    const store = await at.open();
    const tables = await at.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
    const everything = () => Promise.all(tables.map(({ name }) => at.rows(`SELECT * FROM "${name}"`)));
    const before = { stats: engine.stats(), rows: await everything() };
    const writes: string[] = [];
    const watched: typeof store = {
      ...store,
      warmUp: async (calls) => {
        writes.push(...calls.map(({ key }) => key));
        await store.warmUp?.(calls);
      },
    };
    const lent = { engine, bodies, store: watched };
    expect(await warmUp(lent, [planned(await bundleOf(name))], never)).toBeUndefined();
    // It has really gone all the way.
    expect(new Set(writes)).toEqual(new Set(["accounts.accountAdd", "charges.hold", "robot.settleChunk"]));
    const { allocations, ...counters } = engine.stats();
    expect({ ...counters, allocations: before.stats.allocations }).toEqual(before.stats);
    expect(allocations).toBeGreaterThan(before.stats.allocations);
    expect(await everything()).toEqual(before.rows);
    await Promise.all([engine.close(), bodies.close()]);
    await store.close();
  }, 60_000);
}

test("a model that takes frames of one size alone is warmed up with those of its parity vectors", async () => {
  const out = join(await emptyDir(), "bundle");
  await importAct(out, "lab/act:arm");
  const engine = ok(await openEngine({ decodeThreads: 1 }));
  const lent = { engine, bodies: new Bodies(), store: fakeStore() };
  expect(await warmUp(lent, [planned(ok(await readBundle(out)))], never)).toBeUndefined();
  await engine.close();
}, 60_000);

test("observations of every kind of model are right ones, and give back what they held", async () => {
  for (const facts of [manifest(), statefulManifest(), cartesianManifest(), vectorManifest()]) {
    const engine = new FakeEngine();
    expect(await warmUp({ engine, bodies: new Bodies(), store: fakeStore() }, plan(facts), never)).toBeUndefined();
    const { framesHeld, runsHeld, commits, observations } = engine;
    expect([facts.id, framesHeld, runsHeld]).toEqual([facts.id, 0, 0]);
    expect([commits, observations.map(({ step }) => step)]).toEqual([commits, [...Array(commits).keys()]]);
    expect(commits).toBeGreaterThan(1);
  }
});

test("a model that does not answer is told in a sentence, and without models there is nothing to do", async () => {
  const lent = { bodies: new Bodies(), store: fakeStore() };
  const full = Object.assign(new FakeEngine(), {
    load: async () => new Problem("16 models are loaded already"),
  });
  expect(await warmUp({ ...lent, engine: full }, plan(), never)).toBe("16 models are loaded already");
  const ill = new FakeEngine();
  ill.script.run = async () => ill.fault("it is ill");
  expect(await warmUp({ ...lent, engine: ill }, plan(), never)).toStartWith("observation 0 was answered with 500");
  expect(await warmUp({ ...lent, engine: ill }, [], never)).toBeUndefined();
});

test("it ends between two observations once the service is told to stop", async () => {
  const engine = new FakeEngine();
  const isOver = () => engine.commits === 2;
  expect(await warmUp({ engine, bodies: new Bodies(), store: fakeStore() }, plan(), isOver)).toBeUndefined();
  expect(engine.commits).toBe(2);
});
