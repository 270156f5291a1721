/**
 * A reply as server-sent events. The writer never waits for the client. A client that leaves more bytes unread than
 * the route allows is disconnected, so that memory is bounded and no event is skipped.
 */
import type { Failure } from "../std/failure.ts";

export const SSE_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // A proxy that collects what it passes on would hold the first comment back.
  "x-accel-buffering": "no",
} as const;

/** Writes one comment or event, whole; after the client has left it does nothing. */
export type Send = (text: string) => void;

export interface Events {
  /** Bytes that the client may leave unread; beyond them the connection is cut. */
  readonly unsentBytesMax: number;
  /** Writes all events. A failure that it returns is written by the transport, with `failed`. */
  write(send: Send): Promise<Failure | undefined>;
  /** How this route says that a stream has failed. */
  failed(failure: Failure): readonly string[];
  /** The client does not wait for the end: it has left, or was cut off. */
  left(): void;
}

const encoder = new TextEncoder();

/** A response body that lives as long as `write` runs, which must not reject. `cut`: the client does not read; `left` follows. */
export function eventStream(
  events: Pick<Events, "unsentBytesMax" | "left">,
  write: (send: Send) => Promise<void>,
  cut: () => void,
): ReadableStream<Uint8Array> {
  let open = true;
  const leave = () => {
    open = false;
    events.left();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send: Send = (text) => {
          if (!open) return;
          const event = encoder.encode(text);
          // The server takes from the stream only what the connection takes from it; the rest counts against the bound.
          if ((controller.desiredSize ?? 0) >= event.length) {
            controller.enqueue(event);
            return;
          }
          controller.error(new Error("the client does not read its events"));
          cut();
          leave();
        };
        const close = () => {
          if (open) controller.close();
          open = false;
        };
        write(send).then(close, (error: unknown) => controller.error(error));
      },
      cancel: leave,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: events.unsentBytesMax }),
  );
}
