/**
 * A graph of a smaller type as one of float32 that computes with the same weights: half precision is widened, an int8 matrix is multiplied by
 * its scales. Nothing but the weights is rounded.
 */
import { present } from "../std/assert.ts";
import { ATTRIBUTE_TYPE, DATA_TYPE, type ModelProto, type NodeProto } from "./onnx-schema.ts";

const HALVES: ReadonlySet<number> = new Set([DATA_TYPE.f16, DATA_TYPE.bf16]);
const float = (type: number) => (HALVES.has(type) ? DATA_TYPE.f32 : type);

export function exactGraph({ graph, ...model }: ModelProto): ModelProto {
  const single = (ports: typeof graph.input) =>
    ports.map(({ name, type: { tensorType } }) => ({
      name,
      type: { tensorType: { ...tensorType, elemType: float(tensorType.elemType) } },
    }));
  const initializer = graph.initializer.map((tensor) =>
    HALVES.has(tensor.dataType)
      ? { ...tensor, dataType: DATA_TYPE.f32, rawData: widened(tensor.rawData, tensor.dataType) }
      : tensor,
  );
  const node = graph.node.flatMap((one) => {
    if (one.opType === "Cast") return [{ ...one, attribute: one.attribute.map(toFloat) }];
    return one.opType === "DynamicQuantizeMatMul" ? dequantized(one) : [one];
  });
  return { ...model, graph: { ...graph, node, initializer, input: single(graph.input), output: single(graph.output) } };
}

function toFloat(attribute: NodeProto["attribute"][number]): NodeProto["attribute"][number] {
  return attribute.name === "to" ? { ...attribute, i: BigInt(float(Number(attribute.i))) } : attribute;
}

/** x · (weights · scales) + bias, in float32. */
function dequantized({ input: [x, weights, scales, , bias], output: [made] }: NodeProto): NodeProto[] {
  const name = present(made, "its output");
  const node = (
    opType: string,
    input: (string | undefined)[],
    output: string,
    attribute: NodeProto["attribute"] = [],
  ) => ({
    ...{ name: `${output}/${opType}`, opType, attribute, output: [output] },
    input: input.map((one) => present(one, "an input")),
  });
  const to = { name: "to", type: ATTRIBUTE_TYPE.int, i: BigInt(DATA_TYPE.f32) };
  const product = bias === undefined ? name : `${name}/product`;
  return [
    node("Cast", [weights], `${name}/wide`, [to]),
    node("Mul", [`${name}/wide`, scales], `${name}/weights`),
    node("MatMul", [x, `${name}/weights`], product),
    ...(bias === undefined ? [] : [node("Add", [product, bias], name)]),
  ];
}

/** Numbers of two bytes, IEEE half precision or bfloat16, as float32. */
export function widened(bytes: Uint8Array, half: number): Uint8Array {
  const { buffer } = Uint8Array.from(bytes);
  const values =
    half === DATA_TYPE.f16
      ? Float32Array.from(new Float16Array(buffer))
      : new Float32Array(Uint32Array.from(new Uint16Array(buffer), (word) => word << 16).buffer);
  return new Uint8Array(values.buffer);
}
