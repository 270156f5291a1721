/** The entry point of the thread of the blobs, a Worker. */
import { setPriority } from "node:os";
import { type BlobCall, BlobLoop } from "../runs/blob/loop.ts";
import { randomBase62 } from "../std/ids.ts";

declare const self: Worker;

const NONCE_CHARS = 16;

/** The priority of this thread alone (Linux): a robot never waits for the digest of an upload. */
const NICE = 10;
try {
  setPriority(0, NICE);
} catch {
  // A system that does not allow it leaves the thread as it is.
}

const loop = new BlobLoop(
  (answer, transfer) => self.postMessage(answer, transfer),
  () => randomBase62(NONCE_CHARS),
);

self.onmessage = ({ data }: MessageEvent<BlobCall>) => loop.handle(data);
