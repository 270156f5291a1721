/**
 * What one robot sends and gets, written as the run of an episode. A line is written when the robot knows when the chunk starts;
 * the head with the first answer, because that says what an action is.
 */
import type { Manifest } from "../../bundle/manifest.ts";
import type { ActionChunk } from "../../client/chunk.ts";
import type { EpisodeHead, EpisodeObservation } from "../../client/episode-log/format.ts";
import type { CameraFrames, EpisodeWriter } from "../../client/episode-log/write.ts";
import type { Clock } from "../../std/clock.ts";
import type { Problem } from "../../std/problem.ts";
import { recordedAction, recordedState } from "./columns.ts";

export interface TapePlan {
  readonly clock: Clock;
  readonly writer: EpisodeWriter;
  readonly model: string;
  readonly instruction: string;
  /** Names in the model's order. */
  readonly cameras: readonly string[];
  /** The model's, if its bundle is installed here. */
  readonly manifest: Manifest | undefined;
}

/** An observation that was sent. */
interface Sent {
  readonly state: object;
  readonly frames: CameraFrames;
  readonly observationId: string | null;
  readonly sentMs: number;
}

export class Tape {
  private readonly beganMs: number;
  private readonly startedAt: number;
  /** Of the last observation. */
  private step = -1;

  /** Its episode starts now. */
  constructor(private readonly plan: TapePlan) {
    this.beganMs = plan.clock.monotonicMs();
    this.startedAt = plan.clock.unixMs() / 1000;
  }

  /** Of an observation that is sent now. */
  sending(observation: Omit<Sent, "sentMs">): Sent {
    return { ...observation, sentMs: this.plan.clock.monotonicMs() };
  }

  /** `startMs`: of the clock, when the chunk's first row is due. */
  answered(sent: Sent, chunk: ActionChunk, arrivedMs: number, startMs: number): void {
    const { writer, model, instruction, manifest, cameras } = this.plan;
    if (!writer.hasBegun) {
      const { about } = recordedState(sent.state, manifest);
      const head: Omit<EpisodeHead, "type" | "version"> = {
        model,
        session_id: chunk.session_id,
        instruction,
        started_at: this.startedAt,
        cameras: cameras.map((name) => ({ name })),
        state: about,
        action: recordedAction(chunk, manifest),
      };
      writer.begin(head);
    }
    const { decode, queue, prefill, denoise, encode } = chunk.timing_ms;
    this.step = chunk.step;
    this.write(sent, {
      chunk: { id: null, start: this.secondsAt(startMs), actions: chunk.actions },
      latency_ms: Math.round((arrivedMs - sent.sentMs) * 1000) / 1000,
      timing_ms: { queue, decode, prefill, denoise, encode },
    });
  }

  /** A refusal before the first chunk is not recorded: without a chunk nobody knows what an action would have been. */
  refused(sent: Sent, { message }: Problem): void {
    if (!this.plan.writer.hasBegun) return;
    const [, code = "failed"] = /^([a-z_]+): /.exec(message) ?? [];
    this.step += 1;
    this.write(sent, { chunk: null, latency_ms: null, timing_ms: null, error: { code, message } });
  }

  private write(sent: Sent, answer: Pick<EpisodeObservation, "chunk" | "latency_ms" | "timing_ms" | "error">): void {
    const { values } = recordedState(sent.state, this.plan.manifest);
    const line = { t: this.secondsAt(sent.sentMs), step: this.step, observation_id: sent.observationId, state: values };
    this.plan.writer.observe({ ...line, ...answer }, sent.frames);
  }

  /** Since the start, in whole microseconds. */
  private secondsAt(ms: number): number {
    return Math.round((ms - this.beganMs) * 1000) / 1e6;
  }
}
