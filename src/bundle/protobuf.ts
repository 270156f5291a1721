/**
 * Messages of public formats, described to the protobuf library by field name, number and type. The library does the wire encoding.
 *
 * The only file that imports @bufbuild/protobuf. Same message in, same bytes out: fields are written in the order of the schema.
 */
import { create, createFileRegistry, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { present } from "../std/assert.ts";

const SCALARS = new Map(
  Object.entries({
    int32: Type.INT32,
    int64: Type.INT64,
    bool: Type.BOOL,
    float: Type.FLOAT,
    string: Type.STRING,
    bytes: Type.BYTES,
  }),
);

/** Bytes ↔ message. */
export interface Codec {
  encode(message: object): Uint8Array;
  /** What the schema knows of it; a field that is not in the bytes is undefined. Bytes that are no message throw. */
  decode(bytes: Uint8Array): unknown;
}

/**
 * The codec of `root`. `messages` lists `Name: type field = number; …;` of each message, as proto2 without [packed]. One-ofs are plain fields
 * and enumerations int32, since their wire form is the same.
 */
export function codec(name: string, messages: string, root: string): Codec {
  const file = create(FileDescriptorProtoSchema, {
    name: `${name}.proto`,
    package: name,
    syntax: "proto2",
    messageType: [...messages.matchAll(/(\w+):([^:]*;)/g)].map(([, message = "", fields = ""]) => ({
      name: message,
      field: fieldsOf(name, fields),
    })),
  });
  const schema: DescMessage = present(
    createFileRegistry(file, () => undefined).getMessage(`${name}.${root}`),
    `the schema of ${root}`,
  );
  return {
    encode: (message) => toBinary(schema, create(schema, { ...message })),
    decode: (bytes) => plain(fromBinary(schema, bytes)),
  };
}

function fieldsOf(name: string, text: string): FieldDescriptorProto[] {
  return [...text.matchAll(/(repeated )?(\w+) (\w+) = (\d+);/g)].map(([, many, kind = "", field = "", number]) => {
    const scalar = SCALARS.get(kind);
    const type = scalar === undefined ? { type: Type.MESSAGE, typeName: `.${name}.${kind}` } : { type: scalar };
    const label = many ? Label.REPEATED : Label.OPTIONAL;
    return create(FieldDescriptorProtoSchema, { name: field, number: Number(number), label, ...type });
  });
}

/** Without the type names that the protobuf library puts into messages: parts may be added and changed. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  const fields = Object.entries(value).filter(([name]) => !name.startsWith("$"));
  return Object.fromEntries(fields.map(([name, field]) => [name, plain(field)]));
}
