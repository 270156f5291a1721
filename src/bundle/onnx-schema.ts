/**
 * The part of the public ONNX format (onnx.proto, Apache-2.0, github.com/onnx/onnx) that the graph builder writes,
 * described to the protobuf library by field name, number and type. The library does the wire encoding.
 *
 * The only file that imports @bufbuild/protobuf. Same model in, same bytes out: fields are written in the order of the schema.
 */
import { create, createFileRegistry, toBinary } from "@bufbuild/protobuf";
import {
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { present } from "../std/assert.ts";

/** TensorProto.DataType. */
export const DATA_TYPE = { f32: 1, i64: 7, bool: 9 } as const;
/** AttributeProto.AttributeType. */
export const ATTRIBUTE_TYPE = { float: 1, int: 2, string: 3, ints: 7 } as const;

export interface TensorProto {
  name: string;
  dims: bigint[];
  dataType: number;
  /** Little-endian values, row-major. */
  rawData: Uint8Array;
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
  input: string[];
  output: string[];
  attribute: AttributeProto[];
}

export interface ValueInfoProto {
  name: string;
  type: { tensorType: { elemType: number; shape: { dim: ({ dimValue: bigint } | { dimParam: string })[] } } };
}

export interface ModelProto {
  irVersion: bigint;
  producerName: string;
  docString: string;
  opsetImport: { domain: string; version: bigint }[];
  graph: {
    name: string;
    node: NodeProto[];
    initializer: TensorProto[];
    input: ValueInfoProto[];
    output: ValueInfoProto[];
  };
}

/** A field: name and number as in onnx.proto, its type or the message it holds, and whether it repeats. */
type Field = [name: string, number: number, type: Type | string, many?: "many"];

// proto2 without [packed], as in onnx.proto. One-ofs are written as plain optional fields: the wire form is the same.
const MESSAGES: Record<string, Field[]> = {
  ModelProto: [
    ["ir_version", 1, Type.INT64],
    ["producer_name", 2, Type.STRING],
    ["doc_string", 6, Type.STRING],
    ["graph", 7, "GraphProto"],
    ["opset_import", 8, "OperatorSetIdProto", "many"],
  ],
  OperatorSetIdProto: [
    ["domain", 1, Type.STRING],
    ["version", 2, Type.INT64],
  ],
  GraphProto: [
    ["node", 1, "NodeProto", "many"],
    ["name", 2, Type.STRING],
    ["initializer", 5, "TensorProto", "many"],
    ["input", 11, "ValueInfoProto", "many"],
    ["output", 12, "ValueInfoProto", "many"],
  ],
  NodeProto: [
    ["input", 1, Type.STRING, "many"],
    ["output", 2, Type.STRING, "many"],
    ["name", 3, Type.STRING],
    ["op_type", 4, Type.STRING],
    ["attribute", 5, "AttributeProto", "many"],
  ],
  AttributeProto: [
    ["name", 1, Type.STRING],
    ["f", 2, Type.FLOAT],
    ["i", 3, Type.INT64],
    ["s", 4, Type.BYTES],
    ["ints", 8, Type.INT64, "many"],
    ["type", 20, Type.INT32],
  ],
  TensorProto: [
    ["dims", 1, Type.INT64, "many"],
    ["data_type", 2, Type.INT32],
    ["name", 8, Type.STRING],
    ["raw_data", 9, Type.BYTES],
  ],
  ValueInfoProto: [
    ["name", 1, Type.STRING],
    ["type", 2, "TypeProto"],
  ],
  TypeProto: [["tensor_type", 1, "TensorTypeProto"]],
  TensorTypeProto: [
    ["elem_type", 1, Type.INT32],
    ["shape", 2, "TensorShapeProto"],
  ],
  TensorShapeProto: [["dim", 1, "DimensionProto", "many"]],
  DimensionProto: [
    ["dim_value", 1, Type.INT64],
    ["dim_param", 2, Type.STRING],
  ],
};

function field([name, number, type, many]: Field): FieldDescriptorProto {
  return create(FieldDescriptorProtoSchema, {
    name,
    number,
    label: many ? Label.REPEATED : Label.OPTIONAL,
    ...(typeof type === "string" ? { type: Type.MESSAGE, typeName: `.onnx.${type}` } : { type }),
  });
}

const registry = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "onnx.proto",
    package: "onnx",
    syntax: "proto2",
    messageType: Object.entries(MESSAGES).map(([name, fields]) => ({ name, field: fields.map(field) })),
  }),
  () => undefined,
);
const modelSchema = present(registry.getMessage("onnx.ModelProto"), "the schema of ModelProto");

/** The bytes of an `.onnx` file. */
export function encodeModel(model: ModelProto): Uint8Array {
  return toBinary(modelSchema, create(modelSchema, { ...model }));
}
