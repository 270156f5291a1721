/**
 * What one attempt holds: frames, claim, session, its entry in the forecast, permits, money, inference. Every way out of an
 * attempt ends here, once, in `keep` or in `undo`.
 */
import type { Charge, Charges } from "../charge/charges.ts";
import { isCallersFault, type Unpaid } from "../charge/unpaid.ts";
import type { Inference } from "../engine/engine.ts";
import { present } from "../std/assert.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure, type Row } from "../std/failure.ts";
import type { Log } from "../std/log.ts";
import type { Permit } from "./admission.ts";
import type { Caller } from "./command.ts";
import { ROBOT } from "./errors.ts";
import type { InFlight } from "./forecast.ts";
import type { ObservedFrames } from "./frames.ts";
import type { Interruptions } from "./interruptions.ts";
import type { Claim } from "./replay.ts";
import type { Ticket } from "./session/ticket.ts";

/** The store kept the observation from its answer. */
const STORE_DOWN: readonly Row[] = [EVERY.billing_unavailable, EVERY.metering_unavailable, ROBOT.observation_unknown];

export class Holdings {
  ticket: Ticket | undefined;
  interruptions: Interruptions | undefined;
  inFlight: InFlight | undefined;
  permit: Permit | undefined;
  /** The money for the inference, once it was asked for. */
  charge: Promise<Charge | Failure> | undefined;
  inference: Inference | undefined;
  /** What both outcomes release. */
  private readonly stack = new DisposableStack();
  /** No charge pays for the decode. */
  private unpaid = false;

  constructor(
    private readonly frames: ObservedFrames,
    private readonly caller: Pick<Caller, "requestId" | "accountId" | "signal">,
    private readonly deps: { readonly charges: Pick<Charges, "release">; readonly unpaid: Unpaid; readonly log: Log },
  ) {
    // Permits of frames are free when no decoder is at one any more.
    this.stack.defer(() => this.inBackground(frames.close().then(() => this.framesClosed())));
    this.stack.defer(() => this.inFlight?.leave());
  }

  add(claim: Claim): void {
    this.stack.defer(() => claim.release());
  }

  /** The answer is durable: memory and step move on. From here on nothing is taken back, even after a fault. */
  keep(): void {
    const held = this.end();
    held?.defer(() => {
      present(this.inference, "the inference of an answer").commit();
      this.ticket?.commit();
    });
    held?.dispose();
  }

  /** Takes everything back, unless it was kept. The session is free once the engine has let go of the inference. */
  undo(why?: Failure | "replayed"): void {
    const held = this.end();
    if (!held) return;
    // Otherwise a client that leaves, or sets too short a deadline, would have its frames decoded for nothing.
    const gone = this.caller.signal.aborted || this.interruptions?.missed === true;
    this.unpaid = why === "replayed" || gone || (why !== undefined && isCallersFault(why));
    if (why instanceof Failure && STORE_DOWN.includes(why.row)) this.inFlight?.stalled();
    this.frames.drop();
    const { charge, inference } = this;
    this.inBackground(Promise.resolve(charge).then((money) => this.release(money)));
    held.defer(() => this.ticket?.fail());
    if (!inference) {
      held.dispose();
      return;
    }
    inference.cancel();
    this.inBackground(inference.result.then(() => inference.abort()));
    this.inBackground(inference.released.then(() => held.dispose()));
  }

  private release(charge: Charge | Failure | undefined): void {
    if (charge && !(charge instanceof Failure)) this.deps.charges.release(charge);
  }

  /** The stack for the first way out; undefined for later ones. */
  private end(): DisposableStack | undefined {
    this.interruptions?.disarm();
    return this.stack.disposed ? undefined : this.stack.move();
  }

  private framesClosed(): void {
    this.permit?.release();
    if (!this.unpaid) return;
    const { decodeMs = 0, modelMs = 0 } = this.inference ?? {};
    // Otherwise a short deadline would get the model's time for nothing.
    const missedMs = this.interruptions?.missed ? modelMs : 0;
    this.deps.unpaid.spend(this.caller.accountId, this.frames.decodeMs + decodeMs + missedMs);
  }

  /** Does work that no request waits for: a fault in it goes to the log. */
  private inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) =>
      this.deps.log.error("request fault", { request: this.caller.requestId, stack: String(error) }),
    );
  }
}
