/** The messages of an episode's socket as a client writes and reads them. */
import { numberAt, textAt, valueAt } from "./json.ts";

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
export interface Opened {
  readonly sessionId: string;
  /** Index of the next chunk. */
  readonly step: number;
  readonly framesPerCamera: number;
  readonly cameras: readonly string[];
  readonly rows: number;
  /** Seconds between rows. */
  readonly dt: number;
}

/** Undefined when a field is missing or of another type. */
export function openedOf(message: object): Opened | undefined {
  const [sessionId, step] = [textAt(message, "session_id"), numberAt(message, "step")];
  const framesPerCamera = numberAt(message, "next_frames_per_camera");
  const [rows, dt, cameras] = [numberAt(message, "rows"), numberAt(message, "dt"), valueAt(message, "cameras")];
  if (sessionId === undefined || step === undefined || framesPerCamera === undefined) return undefined;
  if (rows === undefined || dt === undefined || !Array.isArray(cameras)) return undefined;
  return { sessionId, step, framesPerCamera, rows, dt, cameras: cameras.map(String) };
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
