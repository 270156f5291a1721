/** What is said where a run came to no answer that can be given: its result is not the model's, or its record is not durable. */
import type { ChunkResult } from "../engine/engine.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import type { ObserveCommand } from "./command.ts";
import { ROBOT } from "./errors.ts";

/** A result whose shape is not that of the model's chunk must not reach a robot. */
export function uncorrelated({ served }: ObserveCommand, { rows, columns }: ChunkResult): Failure | undefined {
  const { action } = served.manifest;
  if (rows === action.rows && columns === action.columns.length) return undefined;
  const message =
    "the engine's answer is not one to this observation; nothing was charged, connect again and repeat the observation";
  return new Failure(ROBOT.engine_protocol_error, message, {
    detail: `a result of ${rows} x ${columns} instead of ${action.rows} x ${action.columns.length}`,
  });
}

/** Why a record was not made, for the log. */
export const REASONS = {
  known: "another service has answered this observation_id",
  not_held: "the money that the run held had been given back",
} as const;

export function notRecorded(): Failure {
  const message = "the answer could not be recorded and was taken back, as if nothing ran; retry with backoff";
  return new Failure(EVERY.metering_unavailable, message, { retryAfterSeconds: 1 });
}

/** The deadline has passed, or the service ends, while the record is being made durable. */
export function outcomeUnknown({ observationId }: ObserveCommand): Failure {
  const unknown = "nobody knows yet whether the answer's record is durable";
  if (observationId !== undefined) {
    const message = `${unknown}; repeat the same observation_id`;
    return new Failure(ROBOT.observation_unknown, message, { param: "observation_id", retryAfterSeconds: 1 });
  }
  const message = `${unknown}; the step may have been taken: start a new session, or ask without expected_step`;
  return new Failure(ROBOT.observation_unknown, message, { retryAfterSeconds: 1 });
}
