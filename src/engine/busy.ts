/** Failures of a model that are answered in the same words wherever they are met. */

import { ROBOT } from "../robot/errors.ts";
import { Failure } from "../std/failure.ts";

export function busy(what: string): Failure {
  return new Failure(ROBOT.engine_unavailable, `the service is busy: ${what}; retry in a moment`, {
    retryAfterSeconds: 1,
  });
}

export function unloading(): Failure {
  return busy("the model is being unloaded");
}

/** The memory of a session is gone with its replica: the next request of that session says so (410). */
export function replicaOut(): Failure {
  return new Failure(
    ROBOT.engine_unavailable,
    "the replica that had the run does not work any more; retry in a moment",
    {
      retryAfterSeconds: 1,
    },
  );
}

/** A run that needs more than the device has left: others, and later ones, may find it. `detail`: what the runtime says. */
export function noMemory(detail: string): Failure {
  const text =
    "the device of the model has no memory left for this run; retry in a moment, and tell the operator if it goes on";
  return new Failure(ROBOT.engine_unavailable, text, { retryAfterSeconds: 1, detail });
}

export function tooLong(): Failure {
  return new Failure(
    ROBOT.instruction_too_long,
    "the instruction is longer than the model's prompt; send a shorter one (nothing is cut off)",
  );
}

export function cancelled(): Failure {
  return new Failure(ROBOT.engine_unavailable, "the run was cancelled; retry in a moment", { retryAfterSeconds: 1 });
}
