/** Tables as Parquet files, in the types that LeRobot's own have. The one place that knows the writer. */
import { ByteWriter, type KeyValue, parquetWrite, type SchemaElement } from "hyparquet-writer";

/** One column: values, or lists of them, of lists of `depth`. */
export interface Column {
  readonly name: string;
  readonly type: "int64" | "float" | "double" | "string";
  /** Lists inside lists; 0 for plain values. */
  readonly depth: number;
  /** A value per row. */
  readonly values: readonly unknown[];
}

const ELEMENTS: Readonly<Record<Column["type"], Omit<SchemaElement, "name">>> = {
  int64: { type: "INT64" },
  float: { type: "FLOAT" },
  double: { type: "DOUBLE" },
  string: { type: "BYTE_ARRAY", converted_type: "UTF8", logical_type: { type: "STRING" } },
};

export async function writeParquet(path: string, columns: readonly Column[], metadata: KeyValue[] = []): Promise<void> {
  const writer = new ByteWriter();
  await parquetWrite({
    writer,
    schema: [{ name: "schema", num_children: columns.length }, ...columns.flatMap(schemaOf)],
    columnData: columns.map(({ name, type, values }) => ({
      name,
      data: [...(type === "int64" ? whole(values) : values)],
    })),
    kvMetadata: metadata,
    createdBy: "tendon",
  });
  await Bun.write(path, writer.getBuffer());
}

function schemaOf({ name, type, depth }: Pick<Column, "name" | "type" | "depth">): SchemaElement[] {
  if (depth === 0) return [{ name, repetition_type: "OPTIONAL", ...ELEMENTS[type] }];
  return [
    { name, repetition_type: "OPTIONAL", num_children: 1, converted_type: "LIST", logical_type: { type: "LIST" } },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
    ...schemaOf({ name: "element", type, depth: depth - 1 }),
  ];
}

/** Integers of 64 bits are BigInt for the writer. */
function whole(values: readonly unknown[]): unknown[] {
  return values.map((value) => (Array.isArray(value) ? whole(value) : BigInt(value as number)));
}
