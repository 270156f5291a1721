/** One socket of a robot in a history: what it says, and what it hears, looked at message by message. */
import { assert, present } from "../../src/std/assert.ts";
import type { History, Robot } from "./history.ts";
import type { Connection } from "./world.ts";

/** An observation: said again over another connection it is the same. */
export interface Content {
  readonly mark: number;
  readonly id: string | undefined;
  readonly expectedStep: number | undefined;
  /** Camera index and JPEG. */
  readonly frames: readonly Uint8Array[];
  readonly text: string;
  readonly said: Said[];
  /** What it was answered first. */
  answer: Answer | undefined;
}

/** One time that it was said. */
export interface Said {
  readonly link: Link;
  readonly content: Content;
  /** A code, or `step`. */
  outcome: string | undefined;
}

interface Answer {
  /** All fields but the rows. */
  readonly head: string;
  readonly values: Float32Array;
}

export interface Outgoing {
  readonly data: string | Uint8Array;
  readonly content?: Content;
}

interface Message {
  readonly type: string;
  readonly id: string;
  readonly session_id: string;
  readonly step: number;
  readonly code: string;
  readonly closing: boolean;
  readonly observation_id?: string;
  readonly replayed?: true;
  readonly actions?: readonly (readonly number[])[];
  readonly rows: number;
  readonly action_dim: number;
  readonly reason: string;
}

/** Errors that leave the connection as it is (specification); `invalid_image` does after the first chunk. */
const STAYS = new Set([
  "invalid_camera",
  "invalid_json",
  "session_open",
  "session_missing",
  "instruction_changed",
  "session_step_conflict",
  "image_count_mismatch",
]);
/** Errors that are no observation's, where they name none. */
const UNBOUND = new Set(["invalid_camera", "invalid_json", "session_open", "message_too_large", "session_expired"]);
const FAULTS_OF_THE_SERVER = new Set(["model_failure", "engine_unavailable", "internal_error"]);

export class Link {
  /** In the order in which the server got them. */
  readonly said: Said[] = [];
  /** Composed and not said yet. */
  readonly outgoing: Outgoing[] = [];
  /** `cut`: the server is told, the client hears nothing any more. `deaf`: the client does not read. */
  state: "alive" | "deaf" | "cut" | "closed" | "killed" = "alive";
  /** Step of the next chunk; undefined before `session.opened`. */
  next: number | undefined;
  /** Step of the observation that is composed next. */
  belief: number;
  sessionId: string | undefined;
  /** Somebody else may have had its session while it was being opened. */
  contended = false;
  /** It has said `session.close`. */
  done = false;
  /** The last error that closes. */
  closing: string | undefined;
  private closeCode: number | undefined;
  private readonly connection: Connection;
  private heard = 0;

  constructor(
    private readonly history: History,
    readonly index: number,
    readonly robot: Robot,
    /** undefined: the server assigns one. */
    readonly named: string | undefined,
    readonly format: "json" | "f32",
  ) {
    this.connection = history.world.connect(robot.account);
    this.belief = named === undefined ? 0 : robot.step;
    this.sessionId = named;
  }

  /** The session within its account and model: no two connections have the same session without a name. */
  get session(): string {
    return this.named ?? `of L${this.index}`;
  }

  get unanswered(): Said[] {
    return this.said.filter(({ outcome }) => outcome === undefined);
  }

  get isThere(): boolean {
    return this.state === "alive" || this.state === "deaf";
  }

  say({ data, content }: Outgoing): void {
    if (content) {
      const said = { link: this, content, outcome: undefined };
      this.said.push(said);
      content.said.push(said);
    }
    this.connection.receive(data);
  }

  cut(): void {
    if (!this.isThere) return;
    this.hear();
    if (!this.isThere) return;
    this.state = "cut";
    this.connection.gone();
  }

  /** The client reads nothing from now on. */
  stall(how: "waits" | "dropped"): void {
    this.hear();
    if (this.state !== "alive") return;
    this.state = "deaf";
    if (how === "waits") this.connection.wire.unread = Number.MAX_SAFE_INTEGER;
    else this.connection.wire.drops = true;
  }

  hear(): void {
    const { wire } = this.connection;
    if (this.state === "cut" || this.state === "closed") {
      assert(wire.out.length === this.heard, `L${this.index}: nothing is said on a connection that has ended`);
      return;
    }
    if (this.state === "killed") return;
    if (this.state === "deaf") this.heard = wire.out.length;
    while (this.heard < wire.out.length) this.message();
    if (wire.closed === undefined) {
      assert(this.closeCode === undefined, `L${this.index}: an error that closes, closes`);
      return;
    }
    const expected = this.state === "deaf" ? [1013, 1001, 1008, 1011] : [this.closeCode ?? 1001];
    assert(expected.includes(wire.closed), `L${this.index} is closed with ${wire.closed}, not ${expected.join()}`);
    if (this.closing === undefined) this.note(`closed, ${wire.closed}`);
    this.state = this.state === "deaf" ? "cut" : "closed";
    this.connection.gone();
  }

  private message(): void {
    const { wire } = this.connection;
    const text = wire.out[this.heard];
    this.heard += 1;
    assert(typeof text === "string", `L${this.index}: bytes come behind their message`);
    const message = JSON.parse(text) as Message;
    assert(this.closeCode === undefined, `L${this.index}: nothing follows what closes`);
    if (message.type === "session.opened") this.opened(message);
    else if (message.type === "action_chunk") this.chunk(message);
    else if (message.type === "error") this.error(message);
    else {
      const [reason, code] = message.reason === "session_close" ? ["session_close", 1000] : ["shutdown", 1001];
      assert(message.type === "session.closed" && message.reason === reason, `L${this.index}: ${text} is known`);
      this.closeCode = Number(code);
      this.closing = `session closed: ${reason}`;
      assert(this.unanswered.length === 0, `L${this.index}: what was asked for is answered before the end`);
      this.note(`closed ${reason}`);
    }
  }

  private opened({ step, session_id }: Message): void {
    const { account, model } = this.robot;
    assert(this.next === undefined, `L${this.index} is opened once`);
    const expected = this.history.committed(model, account, this.session);
    assert(step === expected, `L${this.index}: opened at step ${step} of a session with ${expected} chunks`);
    assert(this.named === undefined || this.named === session_id, `L${this.index} has the session that it named`);
    this.next = step;
    if (this.said.length === 0) this.belief = step;
    this.sessionId = session_id;
    this.note(`opened at step ${step}`);
  }

  private chunk(message: Message): void {
    const { actions, rows, replayed, ...head } = message;
    const said = this.oldest(message);
    const { content } = said;
    const values = actions ? Float32Array.from(actions.flat()) : this.bytes(rows * message.action_dim);
    assert((actions === undefined) === (this.format === "f32"), `L${this.index}: rows come in the form asked for`);
    assert(message.session_id === this.sessionId, `L${this.index}: a chunk of its session`);
    if (!replayed) {
      assert(content.answer === undefined, `${content.id} is answered anew`);
      assert(message.step === this.next, `L${this.index}: step ${message.step} follows on ${this.next}`);
      const asked = content.expectedStep ?? message.step;
      assert(message.step === asked, `L${this.index}: the step is the expected one`);
      this.next = message.step + 1;
      if (this.robot.sessionId === this.sessionId) this.robot.step = this.next;
    } else assert(content.id !== undefined, `L${this.index}: what has no id is not replayed`);
    const charged = this.history.world.store.kept.filter(({ chargeId }) => chargeId === message.id);
    assert(charged.length === 1, `L${this.index}: ${content.id} is charged once, before it is answered`);
    this.sameAnswer(content, { head: JSON.stringify(head), values });
    this.outcome(said, "step", `step ${message.step}${replayed ? ", replayed" : ""}`);
    if (this.unanswered.length === 0 && this.outgoing.length === 0) this.belief = this.next ?? 0;
  }

  private sameAnswer(content: Content, answer: Answer): void {
    content.answer ??= answer;
    const { head, values } = content.answer;
    const same = head === answer.head && Buffer.compare(Buffer.from(values.buffer), Buffer.from(answer.values.buffer));
    assert(same === 0, `${content.id} is answered as before`);
  }

  private error({ code, closing, observation_id }: Message): void {
    const stays = STAYS.has(code) || (code === "invalid_image" && this.next !== 0);
    assert(closing || stays || code === "message_too_large", `L${this.index}: ${code} closes`);
    assert(!closing || !stays, `L${this.index}: ${code} does not close`);
    if (closing) {
      this.closing = code;
      this.closeCode = FAULTS_OF_THE_SERVER.has(code) ? 1011 : 1008;
    }
    if (code === "session_busy" && this.next === undefined) {
      assert(this.contended, `L${this.index}: session_busy, and nobody has the session`);
    }
    if (code === "session_expired") this.history.renew(this.robot, this.sessionId);
    const newest = this.unanswered.findLast(({ content }) => content.id === observation_id);
    const [oldest] = this.unanswered;
    if (code === "too_many_observations") this.outcome(present(newest, "the observation too many"), code, code);
    else if (observation_id !== undefined) this.outcome(this.oldest({ observation_id }), code, code);
    else if (this.next !== undefined && oldest?.content.id === undefined && oldest && !UNBOUND.has(code)) {
      this.outcome(oldest, code, code);
    } else this.note(code);
    if (this.unanswered.length === 0 && this.outgoing.length === 0) this.belief = this.next ?? this.belief;
  }

  private oldest({ observation_id }: Pick<Message, "observation_id">): Said {
    const [oldest] = this.unanswered;
    assert(oldest !== undefined, `L${this.index}: ${observation_id} was asked for, and only once`);
    const { id } = oldest.content;
    assert(id === observation_id, `L${this.index}: ${id} is answered before ${observation_id}`);
    return oldest;
  }

  private bytes(values: number): Float32Array {
    const bytes = this.connection.wire.out[this.heard];
    this.heard += 1;
    assert(bytes instanceof Uint8Array && bytes.length === values * 4, `L${this.index}: rows follow their message`);
    return new Float32Array(Uint8Array.from(bytes).buffer);
  }

  private outcome(said: Said, outcome: string, text: string): void {
    said.outcome = outcome;
    this.note(`${text} for ${said.content.id ?? `mark ${said.content.mark}`}`);
  }

  private note(text: string): void {
    this.history.note(`L${this.index} ← ${text}`);
  }
}
