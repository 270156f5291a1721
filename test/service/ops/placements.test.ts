/** `auto` keeps a refusal with its number for /readyz: "a model is ready on a device only after its bundle's parity vectors ran there". */
import { expect, test } from "bun:test";
import { Catalog } from "../../../src/robot/catalog.ts";
import { placements } from "../../../src/service/ops/health.ts";
import { FakeEngine } from "../../fake-engine.ts";
import { manifest } from "../../robot/manifests.ts";

const RATES = { prompt: 0n, cachedPrompt: 0n, completion: 0n };

test("a refused device is told with the measured difference, and without the folders of this machine", () => {
  const catalog = new Catalog();
  const refused = [
    { device: "tensorrt:0", reason: "Failed to load library /opt/gpu/lib/libonnx_trt.so with error: no such file" },
    { device: "cuda:0", reason: "its rows are wrong: they differ by 3.1e-1 from the bundle's parity vector 1 of 1" },
  ];
  const facts = manifest();
  catalog.add(facts, RATES, { ...new FakeEngine().model(facts), device: "cpu", refused });
  expect(placements(catalog)).toEqual([
    {
      model: facts.id,
      device: "cpu",
      replicas: ["fake"],
      refused: [
        { device: "tensorrt:0", reason: "Failed to load library libonnx_trt.so with error: no such file" },
        {
          device: "cuda:0",
          reason: "its rows are wrong: they differ by 3.1e-1 from the bundle's parity vector 1 of 1",
        },
      ],
    },
  ]);
});

test("a model with memory tells how many sessions it takes, and what one takes", () => {
  const catalog = new Catalog();
  const facts = manifest();
  const room = { of: "gpu", free: 9_000, reserve: 1_000 };
  const sessionMemory = { places: 4, placesOnDevice: 4, hostMemoryBecause: undefined, slotBytes: 1_000, room };
  catalog.add(facts, RATES, { ...new FakeEngine().model(facts), slots: 6, sessionMemory });
  expect(placements(catalog)).toEqual([
    { model: facts.id, device: "fake", replicas: ["fake"], refused: [], slots: 6, places: 4, slot_bytes: 1_000 },
  ]);
});

test("a model that is still loading has no place", () => {
  const catalog = new Catalog();
  catalog.add(manifest(), RATES);
  expect(placements(catalog)).toEqual([]);
});
