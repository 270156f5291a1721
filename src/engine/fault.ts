/**
 * Why the engine gives no tokens, frame or chunk, in its own words. How a client is told, and what it may do next, is not known here:
 * robot/faults.ts says that.
 */

export type FaultKind =
  /** Its slots are taken, its queue is full, or the model is being unloaded. */
  | "busy"
  /** Somebody has cancelled or withdrawn it. */
  | "cancelled"
  /** The memory of a session is gone with its replica. */
  | "replica_out"
  /** The device has less memory left than this inference needs; others, and later ones, may find it. */
  | "out_of_memory"
  | "instruction_too_long"
  /** The JPEG cannot be decoded. */
  | "bad_image"
  /** The JPEG has another size than the model takes. */
  | "wrong_size"
  /** A bug in a decoder, which the JPEG has met. */
  | "decoder_failed"
  | "model_failed";

export class Fault {
  constructor(
    readonly kind: FaultKind,
    /** What happened, without advice: part of a sentence that a client may read. */
    readonly message: string,
    /** What the runtime or a decoder says, for the log alone. */
    readonly detail?: string,
  ) {}
}

export function busy(what: string): Fault {
  return new Fault("busy", `the service is busy: ${what}`);
}

export function unloading(): Fault {
  return busy("the model is being unloaded");
}

export function replicaOut(): Fault {
  return new Fault("replica_out", "the replica that had the run does not work any more");
}

export function tooLong(): Fault {
  return new Fault("instruction_too_long", "the instruction is longer than the model's prompt");
}
