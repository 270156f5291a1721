/** Bytes that come from another server as a reply. */

import type { Source } from "../../http/download.ts";
import type { BlobBody } from "../blob/blobs.ts";
import { BlobsDown } from "../blob/blobs.ts";

/** Fails, and so breaks the connection, where the store of the bytes does: the client then sees that not all has come. */
export function sourceOf(body: Extract<BlobBody, { pull: unknown }>, leave: () => void): Source {
  return {
    pull: async () => {
      const piece = await body.pull();
      if (piece instanceof BlobsDown) throw new Error(`the bytes of a file broke off: ${piece.reason}`);
      return piece;
    },
    close: async () => {
      leave();
      body.close();
    },
  };
}
