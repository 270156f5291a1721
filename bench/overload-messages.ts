/** What bench/overload.ts and its robots (overload-child.ts) say to each other. */
import { type Static, Type } from "@sinclair/typebox";

/** The first message. */
export const Target = Type.Object({
  url: Type.String(),
  /** One account each; requests take them in turn. */
  apiKeys: Type.Array(Type.String(), { minItems: 1 }),
  body: Type.String(),
  /** That of every observation of an open load. */
  deadlineMs: Type.Number(),
});
export type Target = Static<typeof Target>;

/** Every other message. A closed load has so many robots that each wait for their answer; an open one comes at a fixed rate. */
export const Load = Type.Union([
  Type.Object({ robots: Type.Integer(), seconds: Type.Number() }),
  Type.Object({ perSecond: Type.Number(), seconds: Type.Number() }),
]);
export type Load = Static<typeof Load>;

/** What became of a load, milliseconds by the client's clock. */
export const Became = Type.Object({
  /** Of all that was sent. */
  sent: Type.Integer(),
  /** Of chunks. */
  chunkMs: Type.Array(Type.Number()),
  /** Of refusals with `engine_unavailable` and `Retry-After`. */
  refusedMs: Type.Array(Type.Number()),
  /** Of those, the ones that came when the deadline had passed. */
  withdrawn: Type.Integer(),
  /** Any other answer, or none. */
  failed: Type.Integer(),
  firstFailure: Type.String(),
  /** One robot after the load: since its end and from its sending, of each answer. */
  after: Type.Array(Type.Object({ sinceMs: Type.Number(), ms: Type.Number() })),
});
export type Became = Static<typeof Became>;

export function nothing(): Became {
  return { sent: 0, chunkMs: [], refusedMs: [], withdrawn: 0, failed: 0, firstFailure: "", after: [] };
}
