/**
 * Drills: failures that `serve --dev` causes on purpose (contract section 9): `TENDON_FAULTS=NAME[:PREFIX[@STEP]],…`. The prefix is that of
 * a robot's session id, or of the `Idempotency-Key` of a request to a language model, whose only step is 0.
 */
import { nearest } from "./std/nearest.ts";
import { EXIT, Problem } from "./std/problem.ts";

/** What each drill does to a request of the robot route, or to a response of a language model. */
const NAMES = [
  /** The model fails on the run. */
  "model_failure",
  /** The model fails at its last flow step, once a stream has begun. */
  "after_start",
  "engine_unavailable",
  "auth_unavailable",
  "billing_unavailable",
  "metering_unavailable",
  /** The answer is sent but not stored: repeating the observation gets 503. */
  "result_lost",
  /** The model takes `slowModelMs` longer. */
  "slow_model",
  /** The run hangs; its replica is taken out. */
  "replica_hangs",
  /** The device of the run's replica fails. */
  "device_fails",
  /** Native code panics on the run. */
  "native_panic",
  // Language models.
  /** The provider is not reached. */
  "upstream_unavailable",
  /** The provider refuses the request. */
  "upstream_rejected",
  /** The provider's answer is cut off after its first piece. */
  "upstream_cut",
  /** The provider takes `slowUpstreamMs` longer. */
  "upstream_slow",
  /** The process that runs a background job is taken to have ended. */
  "job_lost",
  // Run storage.
  /** Too many requests are taken to run. */
  "storage_busy",
  /** Neither records nor bytes are reached. */
  "storage_unavailable",
] as const;
export type Drill = (typeof NAMES)[number];

/** These happen where no session is known. */
const WITHOUT_PREFIX: readonly Drill[] = ["auth_unavailable", "storage_busy", "storage_unavailable"];

interface Order {
  readonly name: Drill;
  /** Applies to sessions, or keys, that begin so; undefined: to every request. */
  readonly prefix: string | undefined;
  /** Applies only at this step, once per session or key. */
  readonly step: number | undefined;
  /** Sessions and keys in which it has happened. */
  readonly struck: Set<string>;
}

/** The request that a drill may apply to. */
export interface Target {
  readonly accountId: string;
  readonly model: string;
  /** The `Idempotency-Key` in the case of a language model. */
  readonly sessionId: string | undefined;
  readonly step: number;
}

export class Drills {
  constructor(private readonly orders: readonly Order[] = []) {}

  /** Whether the failure is to happen now. Asking uses up a drill that happens once per session. */
  strikes(name: Drill, target?: Target): boolean {
    return this.orders.some((order) => order.name === name && applies(order, target));
  }
}

/** What a drill makes go wrong in the engine itself. */
export function engineFault(strikes: (name: Drill) => boolean): "hang" | "device" | "panic" | undefined {
  if (strikes("replica_hangs")) return "hang";
  if (strikes("device_fails")) return "device";
  return strikes("native_panic") ? "panic" : undefined;
}

function applies({ prefix, step, struck }: Order, target: Target | undefined): boolean {
  if (prefix === undefined) return true;
  if (target?.sessionId === undefined || !target.sessionId.startsWith(prefix)) return false;
  if (step === undefined) return true;
  const session = `${target.accountId}\n${target.model}\n${target.sessionId}`;
  if (target.step !== step || struck.has(session)) return false;
  struck.add(session);
  return true;
}

/** Reads the value of `TENDON_FAULTS`; an empty one means no drills. */
export function readDrills(value: string): Drills | Problem {
  const orders: Order[] = [];
  for (const word of value.split(",").map((part) => part.trim())) {
    if (word === "") continue;
    const order = readOrder(word);
    if (order instanceof Problem) return order;
    orders.push(order);
  }
  return new Drills(orders);
}

function readOrder(word: string): Order | Problem {
  const colon = word.indexOf(":");
  const said = colon === -1 ? word : word.slice(0, colon);
  const name = NAMES.find((known) => known === said);
  if (name === undefined) return refused(word, `there is no drill "${said}"; did you mean "${nearest(said, NAMES)}"?`);
  if (colon === -1) return { name, prefix: undefined, step: undefined, struck: new Set() };
  if (WITHOUT_PREFIX.includes(name)) return refused(word, `${name} takes no prefix`);
  const [, prefix, step] = /^(.*?)(?:@(\d{1,9}))?$/s.exec(word.slice(colon + 1)) ?? [];
  if (prefix === undefined || prefix === "")
    return refused(word, "a prefix must follow the colon: of session ids, or of Idempotency-Keys");
  return { name, prefix, step: step === undefined ? undefined : Number(step), struck: new Set() };
}

function refused(word: string, reason: string): Problem {
  return new Problem(`TENDON_FAULTS, "${word}": ${reason}`, EXIT.usage);
}
