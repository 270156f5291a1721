/** The files inside the executable, one zstd-compressed asset each. `src/setup/compile.ts` puts the list here; empty when run from source. */

export interface EmbeddedFile {
  /** Its path below the extraction folder, for example `lib/libtendon.so`. */
  readonly path: string;
  /** Bytes when unpacked. */
  readonly size: number;
  readonly sha256: string;
  /** The path of the compressed asset inside the executable. */
  readonly asset: string;
}

export const EMBEDDED: readonly EmbeddedFile[] = [];

/** sha256 over all digests: the name of the extraction folder. */
export const EMBEDDED_ID = "";
