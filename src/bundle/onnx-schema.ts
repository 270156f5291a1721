/** The part of the public ONNX format (onnx.proto, Apache-2.0, github.com/onnx/onnx) that the graph builder writes. */
import { codec } from "./protobuf.ts";

/** TensorProto.DataType. */
export const DATA_TYPE = { f32: 1, u8: 2, i8: 3, i32: 6, i64: 7, bool: 9, f16: 10, bf16: 16 } as const;
/** TensorProto.DataLocation: the values lie in another file. */
export const EXTERNAL = 1;
/** AttributeProto.AttributeType. */
export const ATTRIBUTE_TYPE = { float: 1, int: 2, string: 3, ints: 7 } as const;

interface TensorHead {
  name: string;
  dims: bigint[];
  dataType: number;
}

export interface TensorProto extends TensorHead {
  /** Little-endian values, row-major. */
  rawData: Uint8Array;
}

/** A tensor whose values lie in another file. */
export interface ExternalTensorProto extends TensorHead {
  /** `location`, `offset` and `length`. */
  externalData: { key: string; value: string }[];
  dataLocation: typeof EXTERNAL;
}

export interface AttributeProto {
  name: string;
  type: number;
  f?: number;
  i?: bigint;
  s?: Uint8Array;
  ints?: bigint[];
}

export interface NodeProto {
  name: string;
  opType: string;
  /** Absent for ONNX's own operators. */
  domain?: string;
  input: string[];
  output: string[];
  attribute: AttributeProto[];
}

export interface ValueInfoProto {
  name: string;
  type: { tensorType: { elemType: number; shape: { dim: ({ dimValue: bigint } | { dimParam: string })[] } } };
}

/** `Tensor`: what its initializers are. */
export interface ModelProto<Tensor = TensorProto> {
  irVersion: bigint;
  producerName: string;
  docString: string;
  opsetImport: { domain: string; version: bigint }[];
  graph: {
    name: string;
    node: NodeProto[];
    initializer: Tensor[];
    input: ValueInfoProto[];
    output: ValueInfoProto[];
  };
}

/** The same as onnx.proto. */
const MESSAGES = `
  ModelProto: int64 ir_version = 1; string producer_name = 2; string doc_string = 6; GraphProto graph = 7;
    repeated OperatorSetIdProto opset_import = 8;
  OperatorSetIdProto: string domain = 1; int64 version = 2;
  GraphProto: repeated NodeProto node = 1; string name = 2; repeated TensorProto initializer = 5;
    repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12;
  NodeProto: repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4;
    repeated AttributeProto attribute = 5; string domain = 7;
  AttributeProto: string name = 1; float f = 2; int64 i = 3; bytes s = 4; repeated int64 ints = 8; int32 type = 20;
  TensorProto: repeated int64 dims = 1; int32 data_type = 2; string name = 8; bytes raw_data = 9;
    repeated StringStringEntryProto external_data = 13; int32 data_location = 14;
  StringStringEntryProto: string key = 1; string value = 2;
  ValueInfoProto: string name = 1; TypeProto type = 2;
  TypeProto: TensorTypeProto tensor_type = 1;
  TensorTypeProto: int32 elem_type = 1; TensorShapeProto shape = 2;
  TensorShapeProto: repeated DimensionProto dim = 1;
  DimensionProto: int64 dim_value = 1; string dim_param = 2;
`;
const MODEL = codec("onnx", MESSAGES, "ModelProto");

/** The bytes of an `.onnx` file. */
export function encodeModel(model: ModelProto<TensorProto | ExternalTensorProto>): Uint8Array {
  return MODEL.encode(model);
}

/** The model in an `.onnx` file that holds all its tensors, as far as the schema above knows it. */
export function decodeModel(bytes: Uint8Array): ModelProto;
/** The same of one that may keep tensors in another file. */
export function decodeModel(bytes: Uint8Array, of: "external"): ModelProto<TensorProto | ExternalTensorProto>;
export function decodeModel(bytes: Uint8Array): unknown {
  return MODEL.decode(bytes);
}
