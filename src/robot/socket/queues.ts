/** The two queues of one connection: messages that wait for its session, and observations that wait for their answers. */
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { Failure } from "../../std/failure.ts";
import { ROBOT } from "../errors.ts";
import { isObservation } from "./messages.ts";
import type { ReceivedObservation } from "./observe.ts";
import type { RobotSocketDeps } from "./sockets.ts";

export interface RawMessage {
  readonly message: string | Uint8Array;
  /** Size of the message; of a text as UTF-8. */
  readonly bytes: number;
  /** Monotonic ms. */
  readonly arrivedMs: number;
}

interface QueuedMessage {
  readonly arrived: RawMessage;
  /** The parsed message is not kept: it may take many times the memory of its text. */
  readonly observation: boolean;
}

/** Time for which messages are worked on before the event loop gets its turn. */
const TURN_MS = 5;

/** Messages that wait while the session is opened, in their order. A message that comes before the queue is empty waits behind them. */
export class Backlog {
  private readonly queue: QueuedMessage[] = [];
  private isHeld = false;
  private isWorking = false;

  constructor(
    private readonly clock: Clock,
    private readonly work: (arrived: RawMessage) => void,
  ) {}

  /** A message that comes now has to wait. */
  get waits(): boolean {
    return this.isHeld || this.isWorking;
  }

  /** Observations among the messages that wait. */
  get observations(): number {
    return this.queue.filter(({ observation }) => observation).length;
  }

  /** Finds out once whether the message is an observation, since a failure counts all of them at once. */
  push(arrived: RawMessage): void {
    this.queue.push({ arrived, observation: isObservation(arrived.message) });
  }

  hold(): void {
    this.isHeld = true;
  }

  /** Works on what waits, until the queue is empty or one of its messages has it held again. */
  async release(): Promise<void> {
    this.isHeld = false;
    if (this.isWorking) return;
    this.isWorking = true;
    try {
      await this.workAll();
    } finally {
      this.isWorking = false;
    }
  }

  private async workAll(): Promise<void> {
    let beganMs = this.clock.monotonicMs();
    for (let next = this.next(); next; next = this.next()) {
      this.work(next.arrived);
      if (this.clock.monotonicMs() - beganMs <= TURN_MS) continue;
      await new Promise((done) => setImmediate(done));
      beganMs = this.clock.monotonicMs();
    }
  }

  private next(): QueuedMessage | undefined {
    return this.isHeld ? undefined : this.queue.shift();
  }
}

/** Queued work. `observation` is undefined for a `session.close`. */
interface Work {
  readonly observation: ReceivedObservation | undefined;
  /** Size and number of its messages. */
  readonly bytes: number;
  readonly messages: number;
}

interface Worker {
  answer(observation: ReceivedObservation): Promise<void>;
  close(): void;
  /** The queue is empty. */
  rest(): void;
  fault(error: unknown): void;
}

/** Observations, and a `session.close` behind them, one after another in order of arrival. */
export class Turns {
  /** Observations without an answer so far. */
  outstanding = 0;
  working = false;
  private readonly queue: Work[] = [];

  constructor(
    private readonly service: RobotSocketDeps,
    private readonly accountId: string,
    private readonly pending: Pending,
    private readonly worker: Worker,
  ) {}

  /** The text is counted in the ingress budget already, and is given back with the answer. */
  push(observation: ReceivedObservation, bytes: number, messages: number): void {
    this.outstanding += 1;
    this.service.lifecycle.enter();
    this.queue.push({ observation, bytes, messages });
  }

  pushClose(): void {
    this.queue.push({ observation: undefined, bytes: 0, messages: 0 });
  }

  work(): void {
    if (this.working) return;
    this.working = true;
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
    this.working = false;
    this.worker.rest();
  }

  private done({ textBytes }: ReceivedObservation): void {
    this.outstanding -= 1;
    this.service.ingress.subtract(this.accountId, textBytes);
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
