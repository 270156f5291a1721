/**
 * One connection of `/v1/responses`: a session that it holds, frames that are decoded while they arrive, observations that are
 * answered one after another.
 *
 * A message is checked when it arrives, and its work is queued. A failure that closes ends the connection at once. Queued observations
 * are then dropped. The one that is being answered is taken back if the model has not started, and otherwise finished and kept.
 */
import { isCallersFault } from "../../charge/unpaid.ts";
import type { Model } from "../../engine/engine.ts";
import { Fault } from "../../engine/fault.ts";
import type { JsonObject } from "../../http/json.ts";
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";
import { EVERY } from "../../std/every-route.ts";
import { type CloseCode, Failure } from "../../std/failure.ts";
import { stackOf } from "../../std/log.ts";
import { ROBOT } from "../errors.ts";
import { failureOf } from "../faults.ts";
import { shuttingDown } from "../interruptions.ts";
import type { Holder } from "../session/table.ts";
import { discard, FrameIntake, readFrame } from "./frames.ts";
import {
  echoedId,
  errorText,
  lengthFault,
  noSession,
  type Opening,
  openedText,
  parseMessage,
  readOpening,
  tooMuch,
} from "./messages.ts";
import { answerObservation, type Client, type OpenSession, type ReceivedObservation } from "./observe.ts";
import { type Outbox, Presence } from "./outbox.ts";
import { Backlog, Pending, type RawMessage, Turns } from "./queues.ts";
import { type RobotSocketDeps, Spent } from "./sockets.ts";

/** Close codes that are no error: the client has closed its session, the service shuts down. */
type Goodbye = 1000 | 1001;

export class Episode implements Holder {
  private session: OpenSession | undefined;
  private readonly backlog: Backlog;
  private readonly pending = new Pending();
  private readonly turns: Turns;
  /** The client has sent `session.close`. */
  private closing = false;
  /** The session has expired or was ended by another request. */
  private expired = false;
  gone = false;
  /** The client has left, and the observation that is being answered is finished and kept for a repeat. */
  private goesOn = false;
  private readonly spent: Spent;
  private readonly left = new AbortController();
  private readonly presence: Presence;

  constructor(
    private readonly service: RobotSocketDeps,
    private readonly client: Client,
    private readonly outbox: Outbox,
    private readonly onEnd: () => void,
  ) {
    this.presence = new Presence(service.clock, () => outbox.ping());
    this.spent = new Spent(service.clock, service.unpaid, client.accountId);
    this.backlog = new Backlog(service.clock, (arrived) => this.waited(arrived));
    this.turns = new Turns(service, client.accountId, this.pending, {
      answer: (observation) => this.answer(observation),
      close: () => this.goodbye("session_close", 1000),
      rest: () => this.rest(),
      fault: (error) => this.fault(error),
    });
  }

  /** A message, in the order of their arrival. */
  receive(message: string | Uint8Array): void {
    this.presence.settle(true);
    const bytes = typeof message === "string" ? Buffer.byteLength(message) : message.length;
    const arrived = { message, bytes, arrivedMs: this.service.clock.monotonicMs() };
    this.take(() => (this.backlog.waits ? this.wait(arrived) : this.handle(arrived)));
  }

  private take(work: () => void): void {
    if (this.gone || this.closing) return;
    try {
      const refused = this.service.unpaid.refusal(this.client.accountId);
      if (refused) this.fail(refused);
      else this.spent.work(work);
    } catch (error) {
      this.fault(error);
    }
  }

  private handle(arrived: RawMessage): void {
    if (typeof arrived.message === "string") this.text(arrived.message, arrived);
    else this.frame(arrived.message);
  }

  /** Queues a message while the session is being opened. */
  private wait(arrived: RawMessage): void {
    if (!this.pend(arrived.bytes)) return;
    if (this.service.ingress.add(this.client.accountId, arrived.bytes)) this.fail(tooMuch());
    else this.backlog.push(arrived);
  }

  /** The turn of a message that has waited has come. */
  private waited(arrived: RawMessage): void {
    this.pending.give(arrived.bytes, 1);
    this.service.ingress.subtract(this.client.accountId, arrived.bytes);
    this.take(() => this.handle(arrived));
  }

  /** The connection is gone. */
  dropped(): void {
    this.end(1001, "");
  }

  /** The service shuts down: observations that have arrived are still answered. */
  drain(): void {
    if (this.turns.outstanding === 0 && !this.backlog.waits) this.goodbye("shutdown", 1001);
  }

  get keyId(): string {
    return this.client.keyId;
  }

  /** A pong is a sign of life, and so is every message. */
  heard(): void {
    this.presence.settle(true);
  }

  async answers(): Promise<boolean> {
    return !this.gone && (await this.presence.ask(LIMITS.socketAnswerMs));
  }

  /** The client has most likely connected anew; another robot reads here why. */
  takenOver(): void {
    const message = `another connection of the same key has taken this session over, because this one answered no ping for ${LIMITS.socketAnswerMs / 1000} s; robots need a session_id each`;
    this.fail(new Failure(ROBOT.session_busy, message));
  }

  /** A chunk that is being answered is sent first. */
  sessionEnded(): void {
    this.expired = true;
    if (!this.turns.working) this.expire();
  }

  private expire(): void {
    this.fail(new Failure(ROBOT.session_expired, "the session has ended; open a new one with a new session_id"));
  }

  private text(text: string, arrived: RawMessage): void {
    const message = lengthFault(text, this.session !== undefined) ?? parseMessage(text);
    if (message instanceof Failure) this.refuse(message);
    else if (message.type === "session.open") this.open(message.body);
    else if (message.type === "session.close") this.close();
    else if (!this.session) this.fail(noSession(), echoedId(message.body));
    else this.observation(message.body, arrived);
  }

  /** A refused text message drops the pending frames: they may be those of an observation that could not be read. */
  private refuse(failure: Failure): void {
    this.fail(failure);
    this.dropFrames();
  }

  private dropFrames(): void {
    if (!this.session) return;
    const frames = this.session.intake.take();
    this.pending.give(frames.bytes, frames.messages);
    discard(frames, this.service, this.client);
  }

  private open(body: JsonObject): void {
    const opening = this.readOpening(body);
    if (opening instanceof Failure) {
      this.refuse(opening);
      return;
    }
    this.backlog.hold();
    this.hold(opening).catch((error: unknown) => this.fault(error));
  }

  private readOpening(body: JsonObject): Opening | Failure {
    const { catalog, lifecycle } = this.service;
    const message = "this connection has a session already; open another connection for another one";
    if (this.session) return new Failure(ROBOT.session_open, message);
    return lifecycle.draining ? shuttingDown() : readOpening(body, catalog);
  }

  private async hold(opening: Opening): Promise<void> {
    const held = await this.heldSession(opening);
    if (held instanceof Failure) this.fail(held);
    else if (held !== "gone") {
      const intake = new FrameIntake(this.service, this.client.accountId, opening.served);
      this.session = { ...opening, ...held, intake };
      // The connection may have ended meanwhile.
      if (this.gone) this.letGo(opening.sessionId === undefined ? "end" : "stay");
      else this.say(openedText(opening.served, held));
    }
    await this.backlog.release();
    if (this.service.lifecycle.draining) this.drain();
  }

  private async heldSession(opening: Opening): ReturnType<RobotSocketDeps["sessions"]["hold"]> {
    const { manifest, slots, model } = opening.served;
    const { accountId, authorization } = this.client;
    const principal = await this.service.authenticate(authorization);
    if (principal instanceof Failure) return principal;
    if (!model) return new Failure(ROBOT.engine_unavailable, "the model is still loading; retry in a second");
    const unpayable = () => this.unpayable(opening, model);
    const request = { ...opening, accountId, model: manifest.id, holder: this, slots, unpayable };
    return await this.service.sessions.hold(request);
  }

  /** Why the account cannot pay for a chunk of this session. */
  private async unpayable({ instruction, served }: Opening, model: Model): Promise<Failure | undefined> {
    const promptTokens = model.measure({ instruction });
    if (promptTokens instanceof Fault) return failureOf(promptTokens);
    const max = { promptTokens, completionTokens: served.manifest.action.rows };
    return await this.service.charges.unpayable({ accountId: this.client.accountId, rates: served.rates, max });
  }

  private frame(message: Uint8Array): void {
    const { session } = this;
    if (!session) {
      this.fail(noSession());
      return;
    }
    const frame = readFrame(message, session.served.manifest.cameras);
    if (frame instanceof Failure) {
      this.fail(frame);
      return;
    }
    if (!this.pend(message.length)) return;
    const failure = session.intake.add(frame, message.length, session.step + this.turns.outstanding === 0);
    if (failure) this.fail(failure);
  }

  private observation(body: JsonObject, { bytes, arrivedMs }: RawMessage): void {
    const session = present(this.session, "an open session");
    if (!this.pend(bytes)) return;
    const { lifecycle, ingress } = this.service;
    if (this.turns.outstanding >= LIMITS.socketObservationsMax) {
      const message = `more than ${LIMITS.socketObservationsMax} observations wait for their answers; wait for one before the next`;
      this.fail(new Failure(ROBOT.too_many_observations, message), echoedId(body));
      return;
    }
    if (ingress.add(this.client.accountId, bytes)) {
      this.fail(tooMuch(), echoedId(body));
      return;
    }
    const frames = session.intake.take();
    const observation = { body, textBytes: bytes, frames, arrivedMs, late: lifecycle.draining };
    this.turns.push(observation, bytes + frames.bytes, 1 + frames.messages);
    this.turns.work();
  }

  private close(): void {
    this.closing = true;
    this.turns.pushClose();
    this.turns.work();
  }

  private async answer(received: ReceivedObservation): Promise<void> {
    const { service, client, left } = this;
    const session = present(this.session, "an open session");
    const goesOn = () => {
      this.goesOn = true;
    };
    const asker = { service, client, holder: this, signal: left.signal, goesOn };
    const answer = await answerObservation(asker, session, received);
    if (answer instanceof Failure) {
      this.fail(answer, echoedId(received.body), "answered");
      return;
    }
    this.count(200);
    this.spent.settle(answer.replayed ? "unpaid" : "paid");
    for (const part of answer.sent) this.say(part);
  }

  private rest(): void {
    if (this.expired) this.expire();
    if (this.service.lifecycle.draining) this.drain();
  }

  /** Sends the error; a failure that closes ends the connection after it. `answered`: it answers the current observation. */
  private fail(failure: Failure, observationId?: string, answered?: "answered"): void {
    if (this.gone) return;
    const { service, client } = this;
    const { code: name, detail } = failure;
    if (detail !== undefined) {
      service.log.error("observation failed", { request: client.requestId, code: name, detail });
    }
    this.count(failure.status);
    this.spent.settle(isCallersFault(failure) ? "unpaid" : "paid");
    // A robot whose first frame cannot be read is set up wrongly (specification).
    const first = failure.row === ROBOT.invalid_image && this.session?.step === 0;
    const code = failure.close ?? (first ? 1008 : undefined);
    const closing = code !== undefined;
    const dropped = closing ? this.unanswered(answered) : 0;
    this.say(errorText(failure, { closing, observationId, dropped }));
    if (code !== undefined) this.end(code, failure.wireCode);
  }

  /** Takes back the current observation, if the model has not started, and counts those that get no answer. */
  private unanswered(running: "answered" | undefined): number {
    this.left.abort();
    return this.turns.outstanding - (running === "answered" || this.goesOn ? 1 : 0) + this.backlog.observations;
  }

  private goodbye(reason: string, code: Goodbye): void {
    if (this.gone) return;
    this.say(JSON.stringify({ type: "session.closed", reason }));
    this.end(code, reason);
  }

  private say(message: string | Uint8Array): void {
    if (this.gone || this.outbox.send(message)) return;
    this.service.log.error("socket closed", { request: this.client.requestId, reason: "the client does not read" });
    this.end(1013, "the client does not read");
  }

  /** Releases everything that the connection holds, once. An inference that has started goes on. */
  private end(code: CloseCode | Goodbye, reason: string): void {
    if (this.gone) return;
    this.gone = true;
    this.left.abort();
    this.presence.settle(false);
    // A client that sent session.close will not resume the session.
    this.letGo(this.closing ? "end" : "stay");
    this.dropFrames();
    for (const { frames } of this.turns.drop()) discard(frames, this.service, this.client);
    this.outbox.close(code, reason);
    this.onEnd();
  }

  private letGo(then: "end" | "stay"): void {
    if (!this.session) return;
    const { served, sessionId } = this.session;
    const { accountId } = this.client;
    this.service.sessions.release({ accountId, model: served.manifest.id, sessionId, holder: this }, then);
  }

  /** Counts the message as pending, or ends the connection if too much is. */
  private pend(bytes: number): boolean {
    const failure = this.pending.take(bytes);
    if (failure) this.fail(failure);
    return failure === undefined;
  }

  private count(status: number): void {
    this.service.requests.inc({ route: "episode", status: String(status) });
  }

  /** A bug of ours ends the connection; the log has the stack. */
  private fault(error: unknown): void {
    this.service.log.error("socket fault", { request: this.client.requestId, stack: stackOf(error) });
    this.fail(new Failure(EVERY.internal_error, "the service failed by an internal fault; connect again"));
  }
}
