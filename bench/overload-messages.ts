/** The messages between the proof `overload` and its robots (overload-child.ts). */
import { type Static, Type } from "@sinclair/typebox";

/** The first message. */
export const Target = Type.Object({
  url: Type.String(),
  /** One account each; requests take them in turn. */
  apiKeys: Type.Array(Type.String(), { minItems: 1 }),
  body: Type.String(),
  /** The deadline of every observation of an open load. */
  deadlineMs: Type.Number(),
});
export type Target = Static<typeof Target>;

/** Closed, or open. */
export const Load = Type.Union([
  Type.Object({ robots: Type.Integer(), seconds: Type.Number() }),
  Type.Object({ perSecond: Type.Number(), seconds: Type.Number() }),
]);
export type Load = Static<typeof Load>;

/** What became of a load, milliseconds by the client's clock. */
export const Became = Type.Object({
  sent: Type.Integer(),
  /** Times of chunks. */
  chunkMs: Type.Array(Type.Number()),
  /** Times of refusals with `engine_unavailable` and `Retry-After`. */
  refusedMs: Type.Array(Type.Number()),
  /** Refusals that came when the deadline had passed. */
  withdrawn: Type.Integer(),
  /** Other answers, or none. */
  failed: Type.Integer(),
  firstFailure: Type.String(),
  /** One robot after the load: since its end and from its sending, of each answer. */
  after: Type.Array(Type.Object({ sinceMs: Type.Number(), ms: Type.Number() })),
});
export type Became = Static<typeof Became>;
