/**
 * A robot's side of an episode: one WebSocket to `/v1/responses`, one session on it. The first problem ends it, and every later
 * call returns that same problem. Nothing is sent again here: only the robot knows whether it still wants the answer.
 */
import { LIMITS } from "../limits.ts";
import { type Clock, systemClock } from "../std/clock.ts";
import { parseJson, textAt, valueAt } from "../std/json.ts";
import { printable } from "../std/printable.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { type ActionChunk, chunkOfMessage } from "./chunk.ts";
import { type Opening, openedOf, openMessage, rowsOf, type SessionOpened } from "./episode-messages.ts";
import { keyProblem, type Service, upgradeProblem } from "./http.ts";

const ROUTE = "/v1/responses";
/** Codes that mean that another key is needed (contract section 6). */
const KEY_CODES = ["missing_api_key", "invalid_api_key"];

type MessageType = "session.opened" | "action_chunk" | "session.closed";

/** A call that waits for a message of `type`. Messages answer the calls in their order. */
interface Waiting {
  readonly type: MessageType;
  /** The type of the message that was sent. */
  readonly question: string;
  /** False when the message lacks a field that its type has; the call then still waits. */
  answer(message: object): boolean;
  fail(problem: Problem): void;
}

export class EpisodeSocket {
  private readonly waiting: Waiting[] = [];
  /** What ended the episode. */
  private over: Problem | undefined;
  /** The reason that the service gave before it closes the connection; it is reported with the close code. */
  private reason: Problem | undefined;
  /** An `action_chunk` whose rows come in the next message. */
  private head: object | undefined;
  private format: Opening["format"] = "json";
  /** Set once the session is open. */
  private sessionId: string | undefined;
  /** Cancels the timer of the first call that waits. */
  private disarm = () => {};
  private readonly gone = Promise.withResolvers<void>();

  private constructor(
    private readonly socket: WebSocket,
    private readonly service: Service,
    private readonly clock: Clock,
  ) {
    socket.onmessage = ({ data }: MessageEvent<unknown>) => this.heard(data);
    socket.onclose = ({ code, reason }) => this.closed(code, reason);
  }

  static async connect(service: Service, clock: Clock = systemClock): Promise<EpisodeSocket | Problem> {
    const wrong = keyProblem(service);
    if (wrong !== undefined) return wrong;
    // No compression: JPEG does not get smaller, and a chunk must not wait for it.
    const options = { headers: { authorization: `Bearer ${service.apiKey}` }, perMessageDeflate: false };
    const socket = new WebSocket(`${service.url.replace(/^http/, "ws")}${ROUTE}`, options);
    socket.binaryType = "arraybuffer";
    const { promise, resolve } = Promise.withResolvers<"open" | "refused" | "silent">();
    socket.onopen = () => resolve("open");
    socket.onclose = () => resolve("refused");
    // A close follows, and `upgradeProblem` has the better message.
    socket.onerror = () => {};
    const cancel = clock.after(LIMITS.clientAnswerMs, () => resolve("silent"));
    const end = await promise;
    cancel();
    if (end === "open") return new EpisodeSocket(socket, service, clock);
    if (end === "refused") return await upgradeProblem(service, ROUTE);
    socket.terminate();
    return silent(service, "a WebSocket handshake");
  }

  async open(opening: Opening): Promise<SessionOpened | Problem> {
    this.format = opening.format;
    const opened = await this.ask("session.opened", openMessage(opening), openedOf);
    if (!(opened instanceof Problem)) this.sessionId = opened.session_id;
    return opened;
  }

  /** One frame, made with `frameMessage`. If the service refuses it, the next call that waits returns the problem. */
  frame(message: Uint8Array): void {
    if (this.over === undefined) this.socket.send(message);
  }

  /** An observation with the frames sent before it. Several may be under way: they are answered in their order. */
  observe(fields: object): Promise<ActionChunk | Problem> {
    return this.ask("action_chunk", { type: "observation", ...fields }, chunkOfMessage);
  }

  /**
   * Ends the session, so that its slot is free and its id is used up, and then the connection. After an error that left the
   * connection open the session is ended too, and that error is returned once more.
   */
  async close(): Promise<Problem | undefined> {
    const message = { type: "session.close" };
    // `ask` sends nothing after a problem, but the slot must not stay taken.
    if (this.over !== undefined) this.socket.send(JSON.stringify(message));
    const answer = await this.ask("session.closed", message, (closed) => closed);
    await this.leave();
    return answer instanceof Problem ? answer : undefined;
  }

  /** Ends the connection alone: a client that connects within a minute may go on with the session. */
  async leave(): Promise<void> {
    this.end(new Problem("this client has closed the connection"));
    this.socket.close(1000);
    const cancel = this.clock.after(LIMITS.socketCloseMs, () => {
      this.socket.terminate();
      this.gone.resolve();
    });
    await this.gone.promise;
    cancel();
  }

  private get name(): string {
    return `the service at ${this.service.url}`;
  }

  /** Sends `message` and waits for one of `type`; `read` gives undefined for a message that lacks a field. */
  private ask<T>(
    type: MessageType,
    message: { readonly type: string },
    read: (message: object) => T | undefined,
  ): Promise<T | Problem> {
    if (this.over !== undefined) return Promise.resolve(this.over);
    const { promise, resolve } = Promise.withResolvers<T | Problem>();
    const answer = (heard: object): boolean => {
      const value = read(heard);
      if (value !== undefined) resolve(value);
      return value !== undefined;
    };
    this.waiting.push({ type, question: message.type, answer, fail: resolve });
    if (this.waiting.length === 1) this.arm();
    this.socket.send(JSON.stringify(message));
    return promise;
  }

  /** The time limit of a call begins when it is the next to be answered. */
  private arm(): void {
    this.disarm();
    const [first] = this.waiting;
    if (first === undefined) return;
    this.disarm = this.clock.after(LIMITS.clientAnswerMs, () => {
      this.end(silent(this.service, `'${first.question}'`));
      this.socket.terminate();
    });
  }

  private heard(data: unknown): void {
    if (this.over !== undefined) return;
    if (typeof data !== "string") {
      this.rows(data);
      return;
    }
    const message = parseJson(data);
    const type = textAt(message, "type");
    if (typeof message !== "object" || message === null || type === undefined) this.strange("a message without a type");
    else if (type === "error") this.refused(message);
    else if (type === "action_chunk" && this.format === "f32") this.head = message;
    else if (type === "session.closed" && this.waiting[0]?.type !== type) {
      const reason = textAt(message, "reason") ?? "no reason given";
      this.reason = new Problem(`the service ended the session: ${printable(reason)}`);
    } else this.answered(type, message);
  }

  private rows(data: unknown): void {
    const { head } = this;
    this.head = undefined;
    const actions = head === undefined ? undefined : rowsOf(head, data);
    if (actions === undefined) this.strange("a binary message that holds not the rows of a chunk");
    else this.answered("action_chunk", { ...head, actions });
  }

  private answered(type: string, message: object): void {
    const [first] = this.waiting;
    if (first?.type !== type) {
      this.strange(`'${printable(type)}' ${first === undefined ? "unasked" : `in place of '${first.type}'`}`);
    } else if (first.answer(message)) {
      this.waiting.shift();
      this.arm();
    } else this.strange(`${type} without the fields that it has`);
  }

  private refused(message: object): void {
    const [code, words] = [textAt(message, "code") ?? "an error without a code", textAt(message, "message")];
    const told = printable(words === undefined ? code : `${code}: ${words}`);
    const problem = new Problem(told, KEY_CODES.includes(code) ? EXIT.notSignedIn : EXIT.failed);
    if (valueAt(message, "closing") === true) this.reason = problem;
    else this.end(problem);
  }

  private strange(what: string): void {
    this.end(new Problem(`${this.name} said ${what}; is it a tendon service of this version?`));
    this.socket.terminate();
  }

  private closed(code: number, text: string): void {
    const { reason, sessionId } = this;
    const how = `the connection ${code === 1006 ? "broke off (1006)" : `was closed with code ${code}`}`;
    const why = text === "" ? "" : ` (${printable(text)})`;
    const kept =
      sessionId === undefined
        ? "no session was open; connect again"
        : `nothing was repeated; ${this.name} keeps session '${printable(sessionId)}' for a minute: connect again with that id to go on`;
    this.end(
      reason === undefined
        ? new Problem(`${how}${why}; ${kept}`, EXIT.unreachable)
        : new Problem(`${reason.message} (${how})`, reason.exit),
    );
    this.gone.resolve();
  }

  /** Only the first problem is kept: it is the cause of the others. */
  private end(problem: Problem): void {
    this.over ??= problem;
    this.disarm();
    for (const { fail } of this.waiting.splice(0)) fail(this.over);
  }
}

function silent({ url }: Service, question: string): Problem {
  const seconds = LIMITS.clientAnswerMs / 1000;
  return new Problem(`the service at ${url} did not answer ${question} within ${seconds} s`, EXIT.unreachable);
}
