/** Builds one ONNX graph of standard operators, node by node: batch dimension symbolic, deterministic names and bytes. A value is its name. */
import { assert, present } from "../std/assert.ts";
import type { Facts } from "./architecture.ts";
import { type Graph, INPUT_ROLES } from "./manifest.ts";
import {
  ATTRIBUTE_TYPE,
  type AttributeProto,
  DATA_TYPE,
  EXTERNAL,
  type ExternalTensorProto,
  encodeModel,
  type NodeProto,
  type TensorProto,
  type ValueInfoProto,
} from "./onnx-schema.ts";
import { allOf, type FloatType, given, keptAs, type Values } from "./values.ts";
import { type Extent, WEIGHT_FILE } from "./weight-file.ts";
import type { Build, Matrix, Spread, Weights } from "./weights.ts";

/** Name of a tensor in the graph. */
export type Value = string;
type Input = Graph["inputs"][number];
type Output = Graph["outputs"][number];
/** What else a manifest says of where an input's values come from. */
export type Qualifiers = Omit<Input, "name" | "role" | "dtype" | "shape">;
/** A word is a symbolic dimension. */
export type Port = Pick<Input, "name" | "dtype" | "shape">;
/** A number is written as an int attribute; wrap it in `{ float }` for a float one. */
type Attribute = number | string | readonly number[] | { readonly float: number };

/** A tensor that the graph begins with. */
export interface Initializer {
  readonly name: string;
  readonly dims: readonly number[];
  readonly dtype: keyof typeof DATA_TYPE;
  readonly values: Values;
}

/** The place of a tensor's values in the weight file; undefined: they are in the graph itself. */
export type ExtentOf = (values: Values) => Extent | undefined;

/** First opset with RMSNormalization and RotaryEmbedding; ONNX Runtime 1.30 has kernels for both. */
const OPSET = 23n;
/** The last opset whose MaxPool has a kernel for CUDA in ONNX Runtime 1.30. A graph with that operator needs nothing newer. */
const POOLING_OPSET = 21n;
/** The IR version that belongs to `OPSET`. */
const IR_VERSION = 11n;
/** The domain of ONNX Runtime's own operators, and its version. */
const CONTRIBUTED = { domain: "com.microsoft", version: 1n } as const;

/** All graphs of a model. */
export interface Graphs {
  readonly prefill: GraphBuilder;
  /** Only a model with memory has it. */
  readonly extend?: GraphBuilder;
  /** A model without a flow has none. */
  readonly denoise?: GraphBuilder;
}

export class GraphBuilder {
  private readonly inputs: Input[] = [];
  private readonly outputs: Output[] = [];
  private readonly nodes: NodeProto[] = [];
  /** Casts of weights; see `widened`. */
  private readonly casts: NodeProto[] = [];
  private readonly initializers = new Map<string, Initializer>();
  private readonly taken = new Map<string, number>();
  private path: string[] = [];

  constructor(
    private readonly name: string,
    private readonly model: Pick<Facts, "id" | "reference" | "source">,
    private readonly weights: Weights,
  ) {}

  /** What the graph is built for. */
  get build(): Build {
    return this.weights.build;
  }

  /** `value`, f32, in the type that the graph computes in. */
  inner(value: Value): Value {
    const { compute } = this.build;
    return compute === "f32" ? value : this.cast(value, compute);
  }

  /** `value`, of the type that the graph computes in, as f32. */
  single(value: Value): Value {
    return this.build.compute === "f32" ? value : this.cast(value, "f32");
  }

  /** Names of weights and nodes made inside `body` begin with `name.`. */
  within<T>(name: string, body: () => T): T {
    this.path.push(name);
    const result = body();
    this.path.pop();
    return result;
  }

  /** A cache or a block comes from the output of prefill with the same name, unless `more` says otherwise. */
  input(port: Port, role: Input["role"], more: Qualifiers = {}): Value {
    const from = role === "cache" || role === "block" ? { from: port.name } : {};
    this.inputs.push({ ...port, role, ...from, ...more });
    return port.name;
  }

  /** Renames `value`, an output of a node of this graph, to the name of `port` wherever it is used. */
  output(value: Value, port: Port, role: Output["role"]): void {
    const renamed = (name: Value) => (name === value ? port.name : name);
    for (const node of this.nodes) {
      node.input = node.input.map(renamed);
      node.output = node.output.map(renamed);
    }
    this.outputs.push({ ...port, role });
  }

  /** Adds a node with one output, named after its scope, so that a profile reads like the source. */
  op(opType: string, inputs: readonly Value[], attributes: Readonly<Record<string, Attribute>> = {}): Value {
    return this.ops(opType, inputs, 1, attributes)[0] ?? "";
  }

  /** Adds a node with `count` outputs. */
  ops(
    opType: string,
    inputs: readonly Value[],
    count: number,
    attributes: Readonly<Record<string, Attribute>> = {},
  ): Value[] {
    const name = this.unique(this.qualified(opType.toLowerCase()));
    const output = Array.from({ length: count }, (_, index) => (index === 0 ? name : `${name}:${index}`));
    const attribute = Object.entries(attributes).map(([key, value]) => attributeProto(key, value));
    this.nodes.push({ name, opType, input: [...inputs], output, attribute });
    return output;
  }

  /** Adds a node of an operator that ONNX Runtime has and ONNX has not. An input that is left out is "". */
  contributed(opType: string, inputs: readonly Value[], attributes: Readonly<Record<string, Attribute>> = {}): Value {
    const output = this.op(opType, inputs, attributes);
    present(this.nodes.at(-1), "the node").domain = CONTRIBUTED.domain;
    return output;
  }

  /** A weight, of the type that the graph computes in unless that is said; see `Spread`. */
  weight(name: string, dims: readonly number[], shape: Spread, kept: FloatType = this.build.compute): Value {
    const full = this.qualified(name);
    return this.initializer(full, dims, kept, this.weights.later(full, dims, shape, kept));
  }

  /**
   * Matrices [`from`, `to`] side by side as one weight: the values of `<name>.weight` for each, called `a+b+c.weight`.
   */
  joinedWeight(matrices: readonly Matrix[], from: number, kept: FloatType): Value {
    const named = matrices.map((matrix) => ({ ...matrix, name: this.qualified(`${matrix.name}.weight`) }));
    const name = `${matrices.map(({ name }) => name).join("+")}.weight`;
    const to = matrices.reduce((sum, matrix) => sum + matrix.to, 0);
    return this.initializer(this.qualified(name), [from, to], kept, this.weights.joined(named, from, kept));
  }

  /** The numbers of `weight`, for a weight that is computed from them. */
  wholeWeight(name: string, dims: readonly number[], shape: Spread): Float32Array {
    return this.weights.whole(this.qualified(name), dims, shape);
  }

  /** A weight of the current scope with the given values. */
  computedWeight(name: string, dims: readonly number[], values: Float32Array): Value {
    return this.floats(this.qualified(name), dims, values);
  }

  /** A float32 initialiser with the given values. */
  floats(name: string, dims: readonly number[], values: Float32Array): Value {
    assert(values.length === dims.reduce((size, dim) => size * dim, 1), `initialiser ${name} fills its shape`);
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    return this.initializer(name, dims, "f32", given(bytes));
  }

  /** An int8 initialiser of the current scope with the given values. */
  int8(name: string, dims: readonly number[], values: Int8Array): Value {
    return this.initializer(this.qualified(name), dims, "i8", given(new Uint8Array(values.buffer)));
  }

  scalar(value: number): Value {
    return this.floats(`scalar ${value}`, [], Float32Array.of(value));
  }

  /** A number of the type that the graph computes in. */
  innerScalar(value: number): Value {
    const { compute } = this.build;
    if (compute === "f32") return this.scalar(value);
    return this.filled(`scalar ${value} ${compute}`, [], compute, value);
  }

  /** An initialiser of one number, everywhere the same. */
  filled(name: string, dims: readonly number[], kept: FloatType, value: number): Value {
    const values = new Float32Array(dims.reduce((size, dim) => size * dim, 1)).fill(value);
    const { buffer } = keptAs(kept, values);
    return this.initializer(name, dims, kept, given(new Uint8Array(buffer)));
  }

  /** An int32 initialiser with the given values. */
  int32(name: string, dims: readonly number[], values: Int32Array): Value {
    return this.initializer(name, dims, "i32", given(new Uint8Array(values.buffer)));
  }

  /** An int64 vector, for shapes, axes and sizes. */
  ints(values: readonly number[]): Value {
    const data = BigInt64Array.from(values, BigInt);
    return this.initializer(`ints ${values.join(" ")}`, [values.length], "i64", given(new Uint8Array(data.buffer)));
  }

  cast(value: Value, dtype: keyof typeof DATA_TYPE): Value {
    return this.op("Cast", [value], { to: DATA_TYPE[dtype] });
  }

  /**
   * A weight as float32, cast in each run just before its use. ONNX Runtime orders a graph depth first and follows, of a node's inputs,
   * first the one whose node stands last in the file. So these nodes stand before all others: elsewhere all casts would come before the
   * first product, and the whole model would lie in memory as float32.
   */
  widened(weight: Value): Value {
    const cast = this.cast(weight, "f32");
    this.casts.push(present(this.nodes.pop(), "the cast"));
    return cast;
  }

  reshape(value: Value, shape: readonly number[]): Value {
    return this.op("Reshape", [value, this.ints(shape)]);
  }

  transpose(value: Value, perm: readonly number[]): Value {
    return this.op("Transpose", [value], { perm });
  }

  /** Cuts `value` into pieces of the given sizes along `axis`. */
  split(value: Value, axis: number, sizes: readonly number[]): Value[] {
    return this.ops("Split", [value, this.ints(sizes)], sizes.length, { axis });
  }

  /** The graph as the manifest describes it. */
  get description(): Graph {
    const place = ({ role }: Input) => INPUT_ROLES.indexOf(role);
    const inputs = this.inputs.toSorted((one, other) => place(one) - place(other));
    return { file: `${this.name}.onnx`, inputs, outputs: this.outputs };
  }

  /** All tensors that the graph begins with. */
  get tensors(): readonly Initializer[] {
    return [...this.initializers.values()];
  }

  /** The `.onnx` file. */
  bytes(placing: ExtentOf = () => undefined): Uint8Array {
    const { id, reference, source } = this.model;
    const contributes = this.nodes.some(({ domain }) => domain !== undefined);
    const version = this.nodes.some(({ opType }) => opType === "MaxPool") ? POOLING_OPSET : OPSET;
    return encodeModel({
      irVersion: IR_VERSION,
      producerName: "tendon",
      docString: `${id}: ${reference ? "REFERENCE BUNDLE, random weights, never for a real arm" : source}`,
      opsetImport: [{ domain: "", version }, ...(contributes ? [CONTRIBUTED] : [])],
      graph: {
        name: this.name,
        node: [...this.casts, ...this.nodes],
        initializer: this.tensors.map((tensor) => tensorProto(tensor, placing(tensor.values))),
        input: this.inputs.map(valueInfo),
        output: this.outputs.map(valueInfo),
      },
    });
  }

  private qualified(name: string): string {
    return [...this.path, name].join(".");
  }

  private unique(name: string): string {
    const count = this.taken.get(name) ?? 0;
    this.taken.set(name, count + 1);
    return count === 0 ? name : `${name}~${count}`;
  }

  private initializer(name: string, dims: readonly number[], dtype: keyof typeof DATA_TYPE, values: Values): Value {
    if (!this.initializers.has(name)) this.initializers.set(name, { name, dims, dtype, values });
    return name;
  }
}

function tensorProto(
  { name, dims, dtype, values }: Initializer,
  placed: Extent | undefined,
): TensorProto | ExternalTensorProto {
  const head = { name, dims: dims.map(BigInt), dataType: DATA_TYPE[dtype] };
  if (placed === undefined) return { ...head, rawData: allOf(values) };
  const entries = { location: WEIGHT_FILE, offset: placed.offset, length: values.bytes };
  const externalData = Object.entries(entries).map(([key, value]) => ({ key, value: String(value) }));
  return { ...head, externalData, dataLocation: EXTERNAL };
}

function attributeProto(name: string, value: Attribute): AttributeProto {
  if (typeof value === "number") return { name, type: ATTRIBUTE_TYPE.int, i: BigInt(value) };
  if (typeof value === "string") return { name, type: ATTRIBUTE_TYPE.string, s: new TextEncoder().encode(value) };
  if ("float" in value) return { name, type: ATTRIBUTE_TYPE.float, f: value.float };
  return { name, type: ATTRIBUTE_TYPE.ints, ints: value.map(BigInt) };
}

function valueInfo(port: Port): ValueInfoProto {
  const dim = port.shape.map((size) => (typeof size === "string" ? { dimParam: size } : { dimValue: BigInt(size) }));
  return { name: port.name, type: { tensorType: { elemType: DATA_TYPE[port.dtype], shape: { dim } } } };
}
