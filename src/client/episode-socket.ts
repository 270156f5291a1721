/**
 * A robot's side of an episode: one WebSocket to `/v1/responses`, one session on it. Whatever goes wrong ends it, and every
 * call from then on returns that same problem: nothing is repeated here, because only the robot knows whether it still wants it.
 */

import { printable } from "../cli/frame/print.ts";
import { EXIT, Problem } from "../error/problem.ts";
import { LIMITS } from "../limits.ts";
import { type Clock, systemClock } from "../std/clock.ts";
import { type ActionChunk, chunkOfMessage } from "./chunk.ts";
import { keyProblem, type Service, upgradeRefusal } from "./http.ts";
import { numberAt, parseJson, textAt, valueAt } from "./json.ts";

const ROUTE = "/v1/responses";
const FLOAT_BYTES = 4;
/** Another key is needed (contract section 6). */
const KEY_CODES = ["missing_api_key", "invalid_api_key"];

/** `session.open`. */
export interface Opening {
  readonly model: string;
  readonly instruction: string;
  readonly sessionId?: string | undefined;
  readonly seed?: number | undefined;
  readonly format: "json" | "f32";
}

/** `session.opened`, as far as a robot needs it. */
export interface Opened {
  readonly sessionId: string;
  /** Index of the next chunk. */
  readonly step: number;
  readonly framesPerCamera: number;
  readonly cameras: readonly string[];
  readonly rows: number;
  /** Seconds between rows. */
  readonly dt: number;
}

/** One camera frame as it goes over the socket. */
export function frameMessage(camera: number, jpeg: Uint8Array): Uint8Array {
  const message = new Uint8Array(1 + jpeg.length);
  message[0] = camera;
  message.set(jpeg, 1);
  return message;
}

type MessageType = "session.opened" | "action_chunk" | "session.closed";

/** Somebody who waits for a message: it is for the first of them. */
interface Waiting {
  readonly type: MessageType;
  /** The type of what was asked. */
  readonly question: string;
  settle(answer: object | Problem): void;
}

export class EpisodeSocket {
  private readonly waiting: Waiting[] = [];
  /** What ended the episode. */
  private over: Problem | undefined;
  /** What the service said before it closes the connection. */
  private lastWords: Problem | undefined;
  /** An `action_chunk` whose rows come in the next message. */
  private head: object | undefined;
  private format: Opening["format"] = "json";
  /** Once it is open. */
  private sessionId: string | undefined;
  /** Ends the time that the first of those who wait has. */
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
    // The service compresses nothing: JPEG does not get smaller, and a chunk must not wait for it.
    const options = { headers: { authorization: `Bearer ${service.apiKey}` }, perMessageDeflate: false };
    const socket = new WebSocket(`${service.url.replace(/^http/, "ws")}${ROUTE}`, options);
    socket.binaryType = "arraybuffer";
    const { promise, resolve } = Promise.withResolvers<"open" | "refused" | "silent">();
    socket.onopen = () => resolve("open");
    socket.onclose = () => resolve("refused");
    // What it says is told better by the service itself.
    socket.onerror = () => {};
    const cancel = clock.after(LIMITS.clientAnswerMs, () => resolve("silent"));
    const end = await promise;
    cancel();
    if (end === "open") return new EpisodeSocket(socket, service, clock);
    if (end === "refused") return await upgradeRefusal(service, ROUTE);
    socket.terminate();
    return silent(service, "a WebSocket handshake");
  }

  async open({ model, instruction, sessionId, seed, format }: Opening): Promise<Opened | Problem> {
    this.format = format;
    const answer = await this.ask("session.opened", {
      ...{ type: "session.open", model, instruction, actions_format: format },
      ...(sessionId === undefined ? {} : { session_id: sessionId }),
      ...(seed === undefined ? {} : { seed }),
    });
    if (answer instanceof Problem) return answer;
    const opened = openedOf(answer);
    if (opened === undefined) {
      return this.end(new Problem(`${this.name} said session.opened without the fields that it has`));
    }
    this.sessionId = opened.sessionId;
    return opened;
  }

  /** One frame, made with `frameMessage`; what is wrong with it is told by the next call that waits. */
  frame(message: Uint8Array): void {
    if (this.over === undefined) this.socket.send(message);
  }

  /** An observation with the frames sent before it. Several may be under way: they are answered in their order. */
  async observe(fields: object): Promise<ActionChunk | Problem> {
    const answer = await this.ask("action_chunk", { type: "observation", ...fields });
    // The rows of a binary message are there already.
    return answer instanceof Problem ? answer : (answer as ActionChunk);
  }

  /**
   * Ends the session, so that its slot is free and its id is used up, and the connection with it. After a refusal that left the
   * connection open too: then what was refused is returned once more.
   */
  async close(): Promise<Problem | undefined> {
    const message = { type: "session.close" };
    // Nobody waits for an answer any more, but the slot shall not stay taken.
    if (this.over !== undefined) this.socket.send(JSON.stringify(message));
    const answer = await this.ask("session.closed", message);
    await this.leave();
    return answer instanceof Problem ? answer : undefined;
  }

  /** Ends the connection alone: whoever connects within a minute may go on with the session. */
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

  private ask(type: MessageType, message: object): Promise<object | Problem> {
    if (this.over !== undefined) return Promise.resolve(this.over);
    const { promise, resolve } = Promise.withResolvers<object | Problem>();
    this.waiting.push({ type, question: String(valueAt(message, "type")), settle: resolve });
    if (this.waiting.length === 1) this.arm();
    this.socket.send(JSON.stringify(message));
    return promise;
  }

  /** Answers come one after another: the time of a question begins when it is the next to be answered. */
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
    else if (type === "action_chunk") this.chunk(chunkOfMessage(message));
    else if (type === "session.closed" && this.waiting[0]?.type !== type) {
      const reason = textAt(message, "reason") ?? "no reason given";
      this.lastWords = new Problem(`the service ended the session: ${printable(reason)}`);
    } else this.answer(type, message);
  }

  /** Little-endian float32, row-major. */
  private rows(data: unknown): void {
    const { head } = this;
    this.head = undefined;
    const [rows, columns] = [numberAt(head, "rows") ?? 0, numberAt(head, "action_dim") ?? 0];
    const fits = data instanceof ArrayBuffer && data.byteLength === rows * columns * FLOAT_BYTES;
    if (head === undefined || !fits) {
      this.strange("a binary message that holds not the rows of a chunk");
      return;
    }
    const view = new DataView(data);
    const value = (index: number): number => view.getFloat32(index * FLOAT_BYTES, true);
    const row = (at: number): number[] => Array.from({ length: columns }, (_, column) => value(at * columns + column));
    this.chunk(
      chunkOfMessage(
        head,
        Array.from({ length: rows }, (_, at) => row(at)),
      ),
    );
  }

  private chunk(chunk: ActionChunk | undefined): void {
    if (chunk === undefined) this.strange("an action_chunk that is none");
    else this.answer("action_chunk", chunk);
  }

  private answer(type: string, message: object): void {
    const [first] = this.waiting;
    if (first?.type !== type) {
      this.strange(`'${printable(type)}' ${first === undefined ? "unasked" : `in place of '${first.type}'`}`);
      return;
    }
    this.waiting.shift();
    this.arm();
    first.settle(message);
  }

  private refused(message: object): void {
    const [code, words] = [textAt(message, "code") ?? "an error without a code", textAt(message, "message")];
    const told = printable(words === undefined ? code : `${code}: ${words}`);
    const problem = new Problem(told, KEY_CODES.includes(code) ? EXIT.notSignedIn : EXIT.failed);
    // The code with which it closes belongs to what is told.
    if (valueAt(message, "closing") === true) this.lastWords = problem;
    else this.end(problem);
  }

  private strange(what: string): void {
    this.end(new Problem(`${this.name} said ${what}; is it a tendon service of this version?`));
    this.socket.terminate();
  }

  private closed(code: number, reason: string): void {
    const { lastWords, sessionId } = this;
    const how = `the connection ${code === 1006 ? "broke off (1006)" : `was closed with code ${code}`}`;
    const why = reason === "" ? "" : ` (${printable(reason)})`;
    const kept =
      sessionId === undefined
        ? "no session was open; connect again"
        : `nothing was repeated; ${this.name} keeps session '${printable(sessionId)}' for a minute: connect again with that id to go on`;
    const lost = `${how}${why}; ${kept}`;
    this.end(
      lastWords === undefined
        ? new Problem(lost, EXIT.unreachable)
        : new Problem(`${lastWords.message} (${how})`, lastWords.exit),
    );
    this.gone.resolve();
  }

  /** Once: the first problem is the cause of the others. */
  private end(problem: Problem): Problem {
    this.over ??= problem;
    this.disarm();
    for (const { settle } of this.waiting.splice(0)) settle(this.over);
    return this.over;
  }
}

function silent({ url }: Service, question: string): Problem {
  const seconds = LIMITS.clientAnswerMs / 1000;
  return new Problem(`the service at ${url} did not answer ${question} within ${seconds} s`, EXIT.unreachable);
}

function openedOf(message: object): Opened | undefined {
  const [sessionId, step] = [textAt(message, "session_id"), numberAt(message, "step")];
  const framesPerCamera = numberAt(message, "next_frames_per_camera");
  const [rows, dt, cameras] = [numberAt(message, "rows"), numberAt(message, "dt"), valueAt(message, "cameras")];
  if (sessionId === undefined || step === undefined || framesPerCamera === undefined) return undefined;
  if (rows === undefined || dt === undefined || !Array.isArray(cameras)) return undefined;
  return { sessionId, step, framesPerCamera, rows, dt, cameras: cameras.map(String) };
}
