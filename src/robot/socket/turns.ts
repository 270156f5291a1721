/** The queue of one connection: its observations, and a `session.close` behind them, one after another in order of arrival. */

import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { ROBOT } from "../errors.ts";
import type { ReceivedObservation } from "./observe.ts";
import type { RobotSocketDeps } from "./sockets.ts";

/** Queued work. `observation` is undefined for a `session.close`. */
interface Work {
  readonly observation: ReceivedObservation | undefined;
  /** Size and number of its messages. */
  readonly bytes: number;
  readonly messages: number;
}

/** Does the work. */
interface Worker {
  answer(observation: ReceivedObservation): Promise<void>;
  close(): void;
  /** The queue is empty. */
  rest(): void;
  fault(error: unknown): void;
}

export class Turns {
  private readonly queue: Work[] = [];
  private unanswered = 0;
  private isWorking = false;

  constructor(
    private readonly service: RobotSocketDeps,
    private readonly accountId: string,
    private readonly pending: Pending,
    private readonly worker: Worker,
  ) {}

  /** Observations without an answer so far. */
  get outstanding(): number {
    return this.unanswered;
  }

  get working(): boolean {
    return this.isWorking;
  }

  /** The text is counted in the ingress budget already, and is given back with the answer. */
  push(observation: ReceivedObservation, bytes: number, messages: number): void {
    this.unanswered += 1;
    this.service.lifecycle.enter();
    this.queue.push({ observation, bytes, messages });
  }

  pushClose(): void {
    this.queue.push({ observation: undefined, bytes: 0, messages: 0 });
  }

  work(): void {
    if (this.isWorking) return;
    this.isWorking = true;
    this.workAll().catch((error: unknown) => this.worker.fault(error));
  }

  /** Empties the queue; what was in it never runs. */
  drop(): readonly ReceivedObservation[] {
    const dropped = this.queue.splice(0).flatMap(({ observation }) => observation ?? []);
    for (const observation of dropped) this.done(observation);
    return dropped;
  }

  private async workAll(): Promise<void> {
    for (let work = this.queue.shift(); work; work = this.queue.shift()) {
      const { observation } = work;
      this.pending.give(work.bytes, work.messages);
      if (observation) await this.worker.answer(observation).finally(() => this.done(observation));
      else this.worker.close();
    }
    this.isWorking = false;
    this.worker.rest();
  }

  private done({ textBytes }: ReceivedObservation): void {
    this.unanswered -= 1;
    this.service.ingress.give(this.accountId, textBytes);
    this.service.lifecycle.leave();
  }
}

/** Messages of one connection whose work has not begun: bounded in bytes and in number (contract section 3). */
export class Pending {
  private bytes = 0;
  private messages = 0;

  /** Counts one message, also if that is too many: `socket_overflow`. */
  take(bytes: number): Failure | undefined {
    this.bytes += bytes;
    this.messages += 1;
    const { socketPendingBytesMax, socketPendingMessagesMax } = LIMITS;
    if (this.bytes <= socketPendingBytesMax && this.messages <= socketPendingMessagesMax) return undefined;
    const most = `${socketPendingBytesMax} bytes or ${socketPendingMessagesMax} messages`;
    return new Failure(ROBOT.socket_overflow, `more than ${most} wait to be worked on; send less at once`);
  }

  give(bytes: number, messages: number): void {
    this.bytes -= bytes;
    this.messages -= messages;
  }
}
