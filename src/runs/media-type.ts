/** The media types that the paths of a run imply. */

/** Extensions that Bun does not know. */
const TYPES: Readonly<Record<string, string>> = {
  jsonl: "application/jsonl",
  parquet: "application/vnd.apache.parquet",
  mcap: "application/octet-stream",
  h5: "application/x-hdf5",
  hdf5: "application/x-hdf5",
};

/** The media type that the extension of a path implies. A type that a client sends is never sent to a browser. */
export function contentType(path: string): string {
  const extension = /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  // Bun reads only the name; it opens no file.
  return TYPES[extension] ?? Bun.file(`file.${extension}`).type;
}
