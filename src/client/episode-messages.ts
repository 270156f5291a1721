/** The messages of an episode's socket as a client writes and reads them. */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { numberAt } from "../std/json.ts";

const FLOAT_BYTES = 4;

/** `session.open`. */
export interface Opening {
  readonly model: string;
  readonly instruction: string;
  readonly sessionId?: string | undefined;
  readonly seed?: number | undefined;
  readonly format: "json" | "f32";
}

export function openMessage({ model, instruction, sessionId, seed, format }: Opening) {
  return {
    ...{ type: "session.open", model, instruction, actions_format: format },
    ...(sessionId === undefined ? {} : { session_id: sessionId }),
    ...(seed === undefined ? {} : { seed }),
  };
}

/** `session.opened`, as far as a robot needs it. */
const SessionOpened = Type.Object({
  session_id: Type.String(),
  /** Index of the next chunk. */
  step: Type.Number(),
  next_frames_per_camera: Type.Number(),
  cameras: Type.Array(Type.String()),
  rows: Type.Number(),
  /** Seconds between rows. */
  dt: Type.Number(),
});
export type SessionOpened = Static<typeof SessionOpened>;

/** Undefined when a field is missing or of another type. */
export function openedOf(message: object): SessionOpened | undefined {
  return Value.Check(SessionOpened, message) ? message : undefined;
}

/** One camera frame: the camera's index, then the JPEG. */
export function frameMessage(camera: number, jpeg: Uint8Array): Uint8Array {
  const message = new Uint8Array(1 + jpeg.length);
  message[0] = camera;
  message.set(jpeg, 1);
  return message;
}

/** The rows of an `action_chunk` in format f32 (little-endian, row-major); undefined when the bytes do not fit its head. */
export function rowsOf(head: object, data: unknown): number[][] | undefined {
  const [rows, columns] = [numberAt(head, "rows") ?? 0, numberAt(head, "action_dim") ?? 0];
  if (!(data instanceof ArrayBuffer) || data.byteLength !== rows * columns * FLOAT_BYTES) return undefined;
  const view = new DataView(data);
  const value = (index: number): number => view.getFloat32(index * FLOAT_BYTES, true);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => value(row * columns + column)),
  );
}
