/** Makes a value inside a graph one more output, for a comparison. */
import { DATA_TYPE, decodeModel, encodeModel } from "./onnx-schema.ts";

/** The name of the added output. */
export const IMAGE_TOKENS = "image_tokens";

/**
 * A prefill graph that also gives its image tokens [B, all tokens, width]: what the last node in the scope `vision` makes. Undefined where no
 * node is in that scope.
 */
export function withImageTokens(
  bytes: Uint8Array,
  dtype: "f32" | "f16" | "bf16",
  [tokens, width]: readonly [number, number],
) {
  const model = decodeModel(bytes, "external");
  const made = model.graph.node.findLast(({ name }) => name.startsWith("vision."))?.output[0];
  if (made === undefined) return undefined;
  for (const node of model.graph.node) {
    node.input = node.input.map((name) => (name === made ? IMAGE_TOKENS : name));
    node.output = node.output.map((name) => (name === made ? IMAGE_TOKENS : name));
  }
  const dim = [{ dimParam: "batch" }, { dimValue: BigInt(tokens) }, { dimValue: BigInt(width) }];
  model.graph.output.push({ name: IMAGE_TOKENS, type: { tensorType: { elemType: DATA_TYPE[dtype], shape: { dim } } } });
  return encodeModel(model);
}
