/** Manifests of models without a flow: what they must not have, and what they say of themselves. */
import { expect, test } from "bun:test";
import { contradiction } from "../../src/bundle/consistency.ts";
import { show } from "../../src/bundle/describe.ts";
import { sizeMismatch } from "../../src/bundle/families.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { present } from "../../src/std/assert.ts";
import { ARCHITECTURE, actBundle, FACTS } from "./act-bundle.ts";

const { manifest } = await actBundle();
const after = (change: (m: Manifest) => unknown) => {
  const changed = structuredClone(manifest);
  change(changed);
  return contradiction(changed);
};

test("a model without a flow has one graph, which gives the chunk of pictures and state", () => {
  expect(after(() => undefined)).toBeUndefined();
  const prefill = manifest.graphs.prefill;
  expect(Object.keys(manifest.graphs)).toEqual(["prefill"]);
  expect(prefill.inputs.map(({ role }) => role)).toEqual(["images", "state"]);
  expect(prefill.outputs).toEqual([{ name: "actions", role: "actions", dtype: "f32", shape: ["batch", 100, 3] }]);
  expect(show(manifest)).toContain("flow     none: one graph gives the rows");
  expect(show(manifest)).toContain("prompt   none: it reads no instruction");
});

test("what only a flow or a prompt can use is refused without them", () => {
  const input = (name: string, role: "tokens" | "token_mask", dtype: "i64" | "bool") => (m: Manifest) =>
    m.graphs.prefill.inputs.push({ name, role, dtype, shape: ["batch", 8] });
  const cases: [(m: Manifest) => unknown, string][] = [
    [(m) => (m.graphs.denoise = m.graphs.prefill), "/graphs/denoise: found a graph, expected nothing, without a flow"],
    [
      (m) => (m.flow = { t_start: 1, t_end: 0, steps: 4, shift: 1 }),
      "/graphs/denoise: found nothing, expected a graph",
    ],
    [(m) => (m.action.prefix = 2), "/action/prefix: found 2, expected nothing, without a flow"],
    [(m) => (m.tokenizer = "norm.json"), "/tokenizer: found norm.json, expected nothing, without a prompt"],
    [(m) => (m.prompt = { tokens_max: 8, pad_id: 0, parts: [{ kind: "instruction" }] }), "/tokenizer: found nothing"],
    [input("tokens", "tokens", "i64"), "/graphs/prefill/inputs/2/role: found tokens, expected images or"],
    [input("mask", "token_mask", "bool"), "/graphs/prefill/inputs/2/role: found token_mask"],
    [(m) => (present(m.graphs.prefill.outputs[0], "it").role = "cache"), "found 0 with role actions, expected one"],
    [(m) => (m.action.rows = 50), "/graphs/prefill/outputs/0/shape"],
    [
      (m) => m.graphs.prefill.outputs.push({ name: "c", role: "cache", dtype: "f32", shape: ["batch", 12, 4] }),
      "/graphs/prefill/outputs/1/role: found cache, expected actions",
    ],
  ];
  for (const [change, expected] of cases) expect(after(change)).toContain(expected);
});

test("sizes that do not fit together are named", () => {
  const image = { ...FACTS.image, tokens: 5 };
  expect(sizeMismatch({ ...FACTS, image }, ARCHITECTURE, 0)).toContain("/image/tokens: found 5, expected 6");
  expect(sizeMismatch(FACTS, { ...ARCHITECTURE, heads: 5 }, 0)).toContain("/architecture/heads: found 5");
  expect(sizeMismatch(FACTS, { ...ARCHITECTURE, environment: 5 }, 0)).toContain("/architecture/environment: found 5");
});
