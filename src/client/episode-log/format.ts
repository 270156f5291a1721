/**
 * The log of a run: `episode.jsonl`, one JSON object a line. The first line is the head, each other line one observation and the
 * chunk that answered it, in the order of their times. Every line stands alone, so that a reader may begin at any line's start.
 *
 * Lengths of time are seconds if their name does not say otherwise. Joints are in radians, positions in metres, grippers as the
 * model has them. A field that is not named here is ignored: a robot may add its notes.
 */
import { type Static, Type } from "@sinclair/typebox";

export const EPISODE_FILE = "episode.jsonl";

/** A camera's name is part of paths, here and in what the log is exported to. */
export const CAMERA_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);
const names = Type.Array(Type.String({ minLength: 1 }));

export const EpisodeHead = Type.Object({
  type: Type.Literal("episode"),
  version: Type.Literal(1),
  /** Id of the model that answered. */
  model: nullable(Type.String()),
  session_id: nullable(Type.String()),
  instruction: nullable(Type.String()),
  /** Unix time, with fractions. The `t` of every line counts from here. */
  started_at: Type.Number({ minimum: 0 }),
  cameras: Type.Array(
    Type.Object({
      name: Type.String({ pattern: CAMERA_NAME.source }),
      /** Path of the camera's video in the run; its time 0 is `started_at`. Without it the lines name frames. */
      video: Type.Optional(Type.String()),
    }),
  ),
  /** What a line's `state` holds. */
  state: Type.Object({ space: Type.String(), names }),
  /** What a row of a chunk holds. */
  action: Type.Object({
    space: Type.String(),
    names,
    /** Between two rows. */
    dt: Type.Number({ exclusiveMinimum: 0 }),
  }),
});
export type EpisodeHead = Static<typeof EpisodeHead>;

const Chunk = Type.Object({
  /** `gen_…`, where the service gave one. */
  id: nullable(Type.String()),
  /** When row 0 is due; row i is due at `start + i * dt`, and replaced when the next chunk starts. */
  start: Type.Number(),
  actions: Type.Array(Type.Array(Type.Number()), { minItems: 1 }),
});

const ms = Type.Number({ minimum: 0 });

export const EpisodeObservation = Type.Object({
  type: Type.Literal("observation"),
  /** When it was sent. */
  t: Type.Number({ minimum: 0 }),
  /** Index of its chunk in the session. */
  step: Type.Integer({ minimum: 0 }),
  observation_id: nullable(Type.String()),
  state: Type.Array(Type.Number()),
  /** Paths in the run by camera, oldest first; of cameras without a video. */
  frames: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String(), { minItems: 1 }))),
  chunk: nullable(Chunk),
  /** At the client, from sending until the whole answer was there. */
  latency_ms: nullable(ms),
  /** The service's own times. */
  timing_ms: nullable(Type.Object({ queue: ms, decode: ms, prefill: ms, denoise: ms, encode: ms })),
  /** In place of a chunk. */
  error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
});
export type EpisodeObservation = Static<typeof EpisodeObservation>;
