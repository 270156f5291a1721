/** A body that arrives: onto the disk of this node, with its digest, under no name that a reader knows. */
import type { Failure } from "../std/failure.ts";
import type { Staged } from "./blob/backend.ts";
import { BlobsDown } from "./blob/blobs.ts";
import type { RunDeps } from "./deps.ts";
import { mismatch, unavailable } from "./failures.ts";

/** Where the pieces of a body go. */
interface Sink {
  write(bytes: Uint8Array): Promise<Failure | undefined>;
  /** The body has not come whole. */
  abort(): Promise<void>;
}

/** Pours the body into the sink; undefined: all of it has come, otherwise the sink was aborted. */
export type Pour = (sink: Sink) => Promise<Failure | undefined>;

interface Body {
  readonly pour: Pour;
  /** As it was announced, bytes. */
  readonly size: number;
  /** What the client says that it is. */
  readonly sha256: Uint8Array | undefined;
  /** In the words of a message. */
  readonly what: string;
}

export async function receive(
  { blobs }: Pick<RunDeps, "blobs">,
  { pour, size, sha256, what }: Body,
): Promise<Staged | Failure> {
  const receiving = await blobs.receive(size);
  if (receiving instanceof BlobsDown) return unavailable(receiving);
  const failed = await pour({
    write: async (bytes) => {
      const down = await receiving.write(bytes);
      return down && unavailable(down);
    },
    abort: () => receiving.discard(),
  });
  if (failed) return failed;
  const staged = await receiving.end();
  if (staged instanceof BlobsDown) return unavailable(staged);
  if (sha256 === undefined || Buffer.compare(staged.sha256, sha256) === 0) return staged;
  await blobs.discard(staged);
  return mismatch(what, sha256, staged.sha256);
}
