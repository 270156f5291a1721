/** What happened on a disk, in order, as shim.c wrote it down. */

/** `enum` of shim.c. */
const KINDS = ["write", "truncate", "sync", "create", "mkdir", "rename", "remove", "sync failed"] as const;
type Kind = (typeof KINDS)[number];

export interface Operation {
  /** Counts from 1; numbers of operations that failed are missing, but for syncs. */
  readonly number: number;
  readonly kind: Kind;
  readonly inode: number;
  /** The offset of a write, the size of a truncation, the number of operations before the beginning of a sync. */
  readonly at: number;
  /** Below the root; the root is `.`. */
  readonly path: string;
  /** The bytes of a write, the new path of a rename. */
  readonly data: Uint8Array;
}

const HEAD_BYTES = 40;

/** A last one that is not whole is left out: its process was killed as it wrote it down. */
export function operationsOf(bytes: Buffer): Operation[] {
  const operations: Operation[] = [];
  for (let at = 0; at + HEAD_BYTES <= bytes.length; ) {
    const [pathBytes, dataBytes] = [bytes.readUInt32LE(at + 28), bytes.readUInt32LE(at + 32)];
    const path = at + HEAD_BYTES;
    const data = path + pathBytes;
    const end = data + dataBytes;
    if (end > bytes.length) break;
    const kind = KINDS[bytes.readUInt32LE(at + 24) - 1];
    if (kind === undefined) throw new Error("the journal of the disk is damaged");
    operations.push({
      number: Number(bytes.readBigUInt64LE(at)),
      inode: Number(bytes.readBigUInt64LE(at + 8)),
      at: Number(bytes.readBigUInt64LE(at + 16)),
      kind,
      path: bytes.toString("utf8", path, data),
      data: bytes.subarray(data, end),
    });
    at = end;
  }
  return operations;
}
