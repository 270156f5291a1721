/** A client of an episode, without a network: what it says goes straight in, what it hears is kept in order. */
import { keyPublicId } from "../../../src/account/key.ts";
import { Episode } from "../../../src/robot/socket/episode.ts";
import { Outbox } from "../../../src/robot/socket/outbox.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { settle } from "../http/outcome.ts";
import { jointState, jpeg as jpegFile, MODEL, type Stage, stage } from "../stage.ts";
import { FakeWire } from "./fake-wire.ts";

export interface Heard {
  readonly type: string;
  readonly code?: string;
  readonly closing?: boolean;
  readonly observation_id?: string;
  readonly step?: number;
  readonly [field: string]: unknown;
}

export class Peer {
  readonly wire = new FakeWire();
  readonly episode: Episode;
  ended = false;

  constructor(
    readonly at: Stage,
    key = at.key,
    accountId = "acct_1",
  ) {
    const client = { requestId: "req_peer", accountId, keyId: keyPublicId(key) ?? key, authorization: `Bearer ${key}` };
    const end = () => {
      this.ended = true;
    };
    this.episode = new Episode(at.service.socket, client, new Outbox(this.wire, at.clock), end);
    this.wire.answer = () => this.episode.heard();
  }

  /** Text messages so far; binary ones as their bytes' number. */
  get heard(): (Heard | number)[] {
    return this.wire.out.map((data) => (typeof data === "string" ? (JSON.parse(data) as Heard) : data.length));
  }

  get last(): Heard {
    const last = this.heard.at(-1);
    if (last === undefined || typeof last === "number") throw new Error("the last message is no text");
    return last;
  }

  get closed(): number | undefined {
    return this.wire.closed;
  }

  async say(message: object | string): Promise<void> {
    this.episode.receive(typeof message === "string" ? message : JSON.stringify(message));
    await settle();
  }

  /** Does not wait for the answer. */
  sayOpen(fields: object = {}): void {
    const open = { type: "session.open", model: MODEL, instruction: "fold the towel", ...fields };
    this.episode.receive(JSON.stringify(open));
  }

  /** Frames and observation, likewise. */
  sayObserve(fields: object = {}, cameras?: readonly number[], jpeg?: Uint8Array): void {
    this.frames(cameras, jpeg);
    this.episode.receive(JSON.stringify({ type: "observation", robot_state: jointState, ...fields }));
  }

  async open(fields: object = {}): Promise<Heard> {
    this.sayOpen(fields);
    await settle();
    return this.last;
  }

  /** One frame of each camera, or of those named. */
  frames(cameras: readonly number[] = [0, 1, 2], jpeg: Uint8Array = jpegFile()): void {
    for (const camera of cameras) this.episode.receive(Buffer.concat([Uint8Array.of(camera), jpeg]));
  }

  async observe(fields: object = {}): Promise<void> {
    await this.say({ type: "observation", robot_state: jointState, ...fields });
  }

  /** Frames and observation; what is heard then. */
  async act(fields: object = {}): Promise<Heard> {
    this.frames();
    await this.observe(fields);
    return this.last;
  }
}

export async function peer(options: Parameters<typeof stage>[0] = {}): Promise<Peer> {
  return new Peer(await stage(options));
}

/** What the connections of a service hold. */
export function held({ engine, service }: Stage) {
  return {
    frames: engine.framesHeld,
    runs: engine.runsHeld,
    admitted: service.robot.admission.held,
    bytes: service.http.ingress.bytes,
  };
}
export const NOTHING = { frames: 0, runs: 0, admitted: 0, bytes: 0 };

/** The observation that each message so far is about. */
export function ids(one: Peer): (string | undefined)[] {
  return one.heard.map((message) => (typeof message === "number" ? `${message} bytes` : message.observation_id));
}

/** What the account has paid and what of its money is held: nano-dollars. */
export async function money({ store }: Stage): Promise<{ paid: bigint; held: bigint }> {
  const account = await store.accounts.accountById("acct_1");
  if (!account || account instanceof StoreDown) throw new Error("no account");
  return { paid: account.settled, held: account.held };
}

/** Leaves `amount` of the 10^15 that the account has. */
export async function leave({ store }: Stage, amount: bigint): Promise<void> {
  const pay = { accountId: "acct_1", transferId: `t${amount}`, amount: amount - 10n ** 15n, at: 0, month: 197_001 };
  if ((await store.charges.credit(pay)) !== "credited") throw new Error("the account could not be debited");
}

/** Inferences that wait until the test lets each go. */
export function gate(at: Stage) {
  const { engine } = at;
  const waiting: (() => void)[] = [];
  engine.script.run = async (run) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    await promise;
    return engine.chunk(run);
  };
  return async () => {
    waiting.shift()?.();
    await settle();
  };
}
