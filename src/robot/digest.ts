/**
 * What makes two observations the same one (contract section 2): their content, whatever transport carries it. `stream` and
 * `actions_format` say only how the answer is printed, `deadline_ms` until when it is of use.
 */
import { canonicalDigest } from "../std/canonical.ts";
import type { ObserveCommand } from "./command.ts";

/** SHA-256, 32 bytes. A control that was left out counts as its default. */
export function observationDigest(command: ObserveCommand): Uint8Array {
  const { served, frames, state } = command;
  return canonicalDigest("observation", {
    model: served.manifest.id,
    session_id: command.sessionId ?? null,
    instruction: command.instruction,
    frames: frames.digests(served.manifest.cameras.length),
    state,
    expected_step: command.expectedStep ?? null,
    action_horizon: command.rows,
    num_inference_steps: command.inferenceSteps ?? null,
    seed: command.seed,
  });
}

/** SHA-256 of one frame's JPEG file. */
export function frameDigest(jpeg: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(jpeg).digest("base64");
}
