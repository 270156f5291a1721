/** What the manifest of a model with memory must say. */
import { beforeAll, expect, test } from "bun:test";
import { contradiction } from "../../src/bundle/consistency.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf } from "./built.ts";

let manifest: Manifest;
beforeAll(async () => {
  manifest = (await bundleOf("dreamzero-astra-yam")).manifest;
});

type Edit = (manifest: Manifest) => void;

function told(edit: Edit): string | undefined {
  const copy = structuredClone(manifest);
  edit(copy);
  return contradiction(copy);
}

/** The port of a role, to be edited. */
function port(
  m: Manifest,
  graph: "prefill" | "extend" | "denoise",
  role: string,
  side: "inputs" | "outputs" = "inputs",
) {
  const found = m.graphs[graph]?.[side].find((one) => one.role === role);
  if (!found) throw new Error(`${graph} has no ${role}`);
  return found as { name: string; from?: string; dtype: string; shape: (number | "batch")[] };
}

function memoryOf(m: Manifest) {
  return present(m.memory, "a memory");
}

test("a bundle as it is built contradicts nothing", () => {
  expect(contradiction(manifest)).toBeUndefined();
});

const CASES: [edit: Edit, told: string][] = [
  [(m) => (m.batch = 2), "/batch: found 2, expected 1, with memory"],
  [(m) => delete m.graphs.extend, "/graphs/extend: found nothing"],
  [(m) => (m.memory = null), "/stateful: found true, expected false"],
  [(m) => (memoryOf(m).tokens = 47), "/memory/tokens: found 47, expected 48"],
  [(m) => (memoryOf(m).later = 8), "/memory/later: found 8, expected 7 at most"],
  [(m) => (memoryOf(m).window = 8), "/graphs/denoise/inputs"],
  [(m) => (m.frames.later = 3), "/graphs/extend/inputs/0/shape: found"],
  [(m) => (m.guidance = null), "/graphs/prefill/inputs/1/shape: found [2,64], expected [1,64]"],
  [(m) => (m.state.width = 32), "/graphs/denoise/inputs/3/shape: found [1,64], expected [1,32]"],
  [(m) => (port(m, "extend", "memory").shape[2] = 335), "/graphs/extend/inputs"],
  [(m) => (port(m, "denoise", "memory").from = "context"), "expected a block of the prefill graph"],
  [(m) => (port(m, "denoise", "block").from = "nowhere"), "expected a block of the prefill graph"],
  [(m) => (port(m, "denoise", "cache").from = "block_k_0"), "expected a cache of the prefill graph"],
  [(m) => (port(m, "denoise", "time").from = "context"), "expected nothing for the role time"],
  [(m) => (port(m, "extend", "block", "outputs").name = "other"), "/graphs/extend/outputs: found"],
  [(m) => (port(m, "prefill", "block", "outputs").dtype = "i64"), "/graphs/prefill/outputs/5/dtype: found i64"],
  [(m) => (port(m, "denoise", "memory_length").dtype = "f32"), "expected i64"],
  [(m) => (port(m, "denoise", "video_velocity", "outputs").shape[0] = 1), "/graphs/denoise/outputs/1/shape: found"],
];

for (const [edit, expected] of CASES) {
  test(`a contradiction is told: ${expected}`, () => {
    expect(told(edit)).toContain(expected);
  });
}
