/** The work of a node beside a robot, by kind. Its load comes from a separate process (load-child.ts). */
import { type Static, Type } from "@sinclair/typebox";

interface Kind {
  readonly about: string;
  /** The unit of the counted work. Open streams are not counted. */
  readonly unit?: "1/s" | "MB/s";
  /** The largest ratio of the robot's p99 beside it to that alone; more where two runs alone differ by more. */
  readonly limit?: number;
  /** The same load goes past the service too, to a listener that does the least with it. */
  readonly hasControl: boolean;
}

export const KINDS = {
  requests: { about: "500 paid requests a second of another account", unit: "1/s", limit: 1.1, hasControl: true },
  upload: { about: "an upload of 20 MB/s", unit: "MB/s", limit: 1.1, hasControl: true },
  streams: {
    about: "200 streams of a language model, 20 tokens a second each",
    limit: 1.1,
    hasControl: true,
  },
  "sign-ins": { about: "4 sign-ins a second with a wrong password", unit: "1/s", hasControl: false },
  pages: { about: "20 pages a second", unit: "1/s", limit: 1.1, hasControl: false },
  crowd: { about: "a crowd that pays nothing", unit: "1/s", limit: 1.25, hasControl: true },
} as const satisfies Record<string, Kind>;
export type KindName = keyof typeof KINDS;
export const KIND_NAMES = Object.keys(KINDS) as KindName[];

/** The first message to the load: what it sends, and where. Its answer is "open" as soon as the load is under way. */
export const Order = Type.Object({
  kind: Type.Union(KIND_NAMES.map((name) => Type.Literal(name))),
  /** Origin of the service, or of the listener of a control. */
  url: Type.String(),
  /** Base address of the provider, for a control with streams. */
  providerUrl: Type.String(),
  isControl: Type.Boolean(),
  apiKey: Type.String(),
  otherKey: Type.String(),
  spentKey: Type.String(),
  /** This process's share of the full load. */
  share: Type.Number(),
});
export type Order = Static<typeof Order>;

/** The answer to the message "stop": the load since "count". */
export const Sent = Type.Object({
  perSecond: Type.Number(),
  failed: Type.Integer(),
  firstFailure: Type.String(),
  /** Answers of a crowd, by kind and status. */
  answers: Type.Record(Type.String(), Type.Integer()),
});
export type Sent = Static<typeof Sent>;

/** `failure`: why a request did not do its work. */
export interface Counter {
  /** Work that is under way or done, in the unit of the kind. */
  sent(amount: number): void;
  answered(failure: string | undefined, what?: string): void;
  readonly isStopped: boolean;
}
