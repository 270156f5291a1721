/** The media type of a file by its name: what a client says of it is never sent to a browser. */

/** Kinds of files that Bun does not know. */
const TYPES: Readonly<Record<string, string>> = {
  jsonl: "application/jsonl",
  parquet: "application/vnd.apache.parquet",
  mcap: "application/octet-stream",
  h5: "application/x-hdf5",
  hdf5: "application/x-hdf5",
};

export function contentType(path: string): string {
  const extension = /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  // Only the name is read; nothing is opened.
  return TYPES[extension] ?? Bun.file(`file.${extension}`).type;
}
