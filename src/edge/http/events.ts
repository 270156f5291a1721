/** Answers as server-sent events. */
import type { Failure } from "../../error/core.ts";

/** Writes one comment or event, whole; after the client has left it does nothing. */
export type Send = (text: string) => void;

/** What a route gives for an answer that is a stream. */
export interface Events {
  /** Writes everything; a failure that it comes to is written by its caller. */
  write(send: Send): Promise<Failure | undefined>;
  /** How this route says that a stream has failed. */
  failed(failure: Failure): readonly string[];
  /** The client does not wait for the end. */
  left(): void;
}

/** A body that lives as long as `write` runs; `left` is called when its reader goes before. */
export function eventStream(write: (send: Send) => Promise<void>, left: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let open = true;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const send: Send = (text) => {
        if (open) controller.enqueue(encoder.encode(text));
      };
      void write(send).then(() => {
        if (open) controller.close();
        open = false;
      });
    },
    cancel() {
      open = false;
      left();
    },
  });
}
