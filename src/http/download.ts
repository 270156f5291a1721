/** A reply as a stream of bytes: for files that are larger than the memory. A piece is read when the client has taken the last. */
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import { pieces } from "../std/file.ts";
import { Pace } from "./pace.ts";

/**
 * Bytes [from, to) of a file, at least one, which the server sends without a copy, with their number as `Content-Length`. A Source
 * goes in chunks: the server drops the `Content-Length` of a stream (oven-sh/bun#10507).
 */
export interface FileSlice {
  readonly path: string;
  readonly from: number;
  readonly to: number;
}

export interface Source {
  /** The next piece; undefined at the end. */
  pull(): Promise<Uint8Array | undefined>;
  /** Called once, after the end, after a failure of `pull`, or when the client has left. */
  close(): Promise<void>;
}

interface Ends {
  readonly clock: Clock;
  /** The client takes less than the least rate, and its connection is broken off. */
  readonly cut: () => void;
  /** Called once, after the source is closed; with the error if it failed. The client of a failed one sees a broken connection. */
  readonly ended: (error?: unknown) => void;
}

export function byteStream(source: Source, { clock, cut, ended }: Ends): ReadableStream<Uint8Array> {
  let open = true;
  let disarm = () => {};
  /** When the client was given its last piece, and the bytes of that. */
  let given = { atMs: clock.monotonicMs(), bytes: 0 };
  const pace = new Pace(LIMITS.readMs, LIMITS.readBytesMin);
  const end = async (error?: unknown) => {
    disarm();
    if (!open) return;
    open = false;
    await source.close().then(
      () => ended(error),
      (second: unknown) => ended(error ?? second),
    );
  };
  const breakOff = (controller: ReadableStreamDefaultController) => {
    controller.error();
    cut();
    end().catch(() => {});
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        disarm();
        if (!pace.isKept(clock.monotonicMs() - given.atMs, given.bytes)) return breakOff(controller);
        try {
          const piece = await source.pull();
          if (!open) return;
          if (piece) {
            controller.enqueue(piece);
            given = { atMs: clock.monotonicMs(), bytes: piece.length };
            disarm = clock.after(LIMITS.readMs, () => breakOff(controller));
          } else {
            controller.close();
            await end();
          }
        } catch (error) {
          // `ended` gets the error; given to the controller, Bun would only print it.
          controller.error();
          await end(error);
        }
      },
      cancel: () => end(),
    },
    // A piece is read only when the client has taken the one before.
    { highWaterMark: 0 },
  );
}

/** The bytes of a slice, read here: for a request whose `Range` the server must not read once more by itself. */
export function sourceOfFile({ path, from, to }: FileSlice): Source {
  const bytes = pieces(path, from, to);
  return {
    pull: async () => (await bytes.next()).value,
    close: async () => {
      await bytes.return(undefined);
    },
  };
}
