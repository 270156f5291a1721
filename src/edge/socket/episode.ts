/**
 * One connection of `/v1/responses`: a session that it holds, frames that are decoded while they arrive, observations that run
 * one after another and are answered in their order.
 *
 * What a message is about is looked at when it arrives; what it asks for waits in a queue. A failure that closes ends the
 * connection at once: what waits in the queue is dropped without a trace, what runs is taken back if the model has not started,
 * and otherwise kept for a repeat of its `observation_id`.
 */
import type { CloseCode } from "../../error.ts";
import { Failure } from "../../error.ts";
import { LIMITS } from "../../limits.ts";
import type { Holder } from "../../session/table.ts";
import { present } from "../../std/assert.ts";
import { makeId } from "../../std/ids.ts";
import { shuttingDown } from "../answer.ts";
import type { JsonObject } from "../json.ts";
import { principalOfHeader } from "../principal.ts";
import type { ObserveCommand } from "../robot/command.ts";
import { beginChunk } from "../robot/run.ts";
import type { Service } from "../service.ts";
import { replayed, type Sent, SocketForm } from "./chunk.ts";
import { FrameGroup, readFrame } from "./frames.ts";
import { echoedId, isTooLong, type Opening, parseMessage, readObservation, readOpening } from "./messages.ts";
import type { Outbox } from "./outbox.ts";
import { Pending } from "./pending.ts";
import { closedText, errorText, openedText } from "./said.ts";

/** Whose connection it is, and the header that says so. */
export interface Client {
  readonly accountId: string;
  readonly authorization: string | null;
}

interface OpenSession extends Opening {
  readonly sessionId: string;
  /** Index of the next chunk. */
  step: number;
  /** Whether its last observation had an id: then the frames of the next one are digested when they arrive. */
  usesIds: boolean;
}

/** A message as it came. */
interface Arrived {
  readonly message: string | Uint8Array;
  /** Of the message; of a text as UTF-8. */
  readonly bytes: number;
  /** Monotonic ms. */
  readonly arrivedMs: number;
}

interface ReceivedObservation {
  readonly body: JsonObject;
  /** Of its text, which stays in memory until it is answered. */
  readonly textBytes: number;
  readonly frames: FrameGroup;
  /** Monotonic ms. */
  readonly arrivedMs: number;
  /** It came after the signal to end. */
  readonly late: boolean;
}

/** What waits for its turn. `undefined` in place of an observation: the client closes its session. */
interface Work {
  readonly observation: ReceivedObservation | undefined;
  /** Of the messages that it consists of. */
  readonly bytes: number;
  readonly messages: number;
}

/** Not an error: the client has closed its session, or the service ends. */
type Goodbye = 1000 | 1001;

export class Episode implements Holder {
  private session: OpenSession | undefined;
  /** Messages that came while the session was being opened. */
  private waiting: Arrived[] | undefined;
  /** Frames that no observation has taken. */
  private frames: FrameGroup | undefined;
  private framesBytes = 0;
  private framesMessages = 0;
  private readonly queue: Work[] = [];
  private outstanding = 0;
  private working = false;
  private readonly pending = new Pending();
  /** The client has said its last word. */
  private closing = false;
  /** The session has ended without it. */
  private expired = false;
  private over = false;
  private readonly left = new AbortController();

  constructor(
    private readonly service: Service,
    private readonly client: Client,
    private readonly outbox: Outbox,
    private readonly onEnd: () => void,
  ) {}

  /** A message, in the order of their arrival. */
  receive(message: string | Uint8Array): void {
    const bytes = typeof message === "string" ? Buffer.byteLength(message) : message.length;
    this.take({ message, bytes, arrivedMs: this.service.clock.monotonicMs() });
  }

  private take(arrived: Arrived): void {
    if (this.over || this.closing) return;
    try {
      if (this.waiting) this.wait(arrived, this.waiting);
      else if (typeof arrived.message === "string") this.text(arrived.message, arrived);
      else this.frame(arrived.message);
    } catch (error) {
      this.fault(error);
    }
  }

  /** The session is being opened. */
  private wait(arrived: Arrived, waiting: Arrived[]): void {
    if (!this.pend(arrived.bytes, 1)) return;
    if (this.service.ingress.take(this.client.accountId, arrived.bytes)) waiting.push(arrived);
    else this.fail(tooMuch());
  }

  /** The connection is gone. */
  dropped(): void {
    this.end(1001, "");
  }

  /** The service ends: what was asked for is still answered. */
  drain(): void {
    if (this.outstanding === 0 && !this.waiting) this.goodbye("shutdown", 1001);
  }

  get gone(): boolean {
    return this.over;
  }

  /** By idleness, or by somebody else. A chunk that is just being answered goes out first. */
  sessionEnded(): void {
    this.expired = true;
    if (!this.working) this.expire();
  }

  private expire(): void {
    this.fail(new Failure("session_expired", "the session has ended; open a new one with a new session_id"));
  }

  private text(text: string, arrived: Arrived): void {
    if (isTooLong(text)) {
      const message = `a text message has at most ${LIMITS.socketTextCharsMax} characters; frames are binary messages`;
      this.fail(new Failure(this.session ? "message_too_large" : "socket_overflow", message));
      return;
    }
    const message = parseMessage(text);
    if (message instanceof Failure) this.fail(message);
    else if (message.type === "session.open") this.open(message.body);
    else if (!this.session) this.fail(noSession(), echoedId(message.body));
    else if (message.type === "session.close") this.close();
    else this.observation(message.body, arrived);
  }

  private open(body: JsonObject): void {
    const { catalog } = this.service;
    const opening = this.session
      ? new Failure("session_open", "this connection has a session already; open another connection for another one")
      : this.service.lifecycle.draining
        ? shuttingDown()
        : readOpening(body, catalog);
    if (opening instanceof Failure) {
      this.fail(opening);
      return;
    }
    this.waiting = [];
    this.guard(this.hold(opening));
  }

  private async hold(opening: Opening): Promise<void> {
    const { manifest, slots, model } = opening.served;
    const { sessions } = this.service;
    const principal = await this.principal();
    const held =
      principal instanceof Failure
        ? principal
        : model === undefined
          ? new Failure("engine_unavailable", "the model is still loading; retry in a second")
          : await sessions.hold({ ...this.name(manifest.id), ...opening, holder: this, slots });
    const messages = present(this.waiting, "messages wait while a session is opened");
    this.waiting = undefined;
    for (const { bytes } of messages) {
      this.pending.give(bytes, 1);
      this.service.ingress.give(this.client.accountId, bytes);
    }
    if (held instanceof Failure) this.fail(held);
    else if (held !== "gone") {
      this.session = { ...opening, ...held, usesIds: false };
      // The connection may have ended meanwhile.
      if (this.over) this.letGo(opening.sessionId === undefined ? "end" : "stay");
      else this.say(openedText(manifest, held));
    }
    for (const arrived of messages) this.take(arrived);
    if (this.service.lifecycle.draining) this.drain();
  }

  private frame(message: Uint8Array): void {
    const { session } = this;
    if (!session) {
      this.fail(noSession());
      return;
    }
    const { manifest } = session.served;
    const frame = readFrame(message, manifest.cameras);
    if (frame instanceof Failure) {
      this.fail(frame);
      return;
    }
    if (!this.pend(message.length, 1)) return;
    this.framesBytes += message.length;
    this.framesMessages += 1;
    this.frames ??= this.group(session);
    const perCamera = session.step + this.outstanding === 0 ? manifest.frames.first : manifest.frames.later;
    const failure = this.frames.add(frame, perCamera * manifest.cameras.length);
    if (failure) this.fail(failure);
  }

  private group({ served: { manifest, model }, usesIds }: OpenSession): FrameGroup {
    const { accountId } = this.client;
    const { admission, ingress } = this.service;
    return new FrameGroup({
      accountId,
      turn: Bun.hash.crc32(accountId),
      modelId: manifest.id,
      model: present(model, "the model of an open session"),
      cameras: manifest.cameras.length,
      admission,
      ingress,
      digests: usesIds,
    });
  }

  private observation(body: JsonObject, { bytes, arrivedMs }: Arrived): void {
    const session = present(this.session, "an open session");
    if (!this.pend(bytes, 1)) return;
    const { lifecycle, ingress } = this.service;
    if (!ingress.take(this.client.accountId, bytes)) {
      this.fail(tooMuch(), echoedId(body));
      return;
    }
    const frames = this.frames ?? this.group(session);
    const observation = { body, textBytes: bytes, frames, arrivedMs, late: lifecycle.draining };
    const work = { observation, bytes: bytes + this.framesBytes, messages: 1 + this.framesMessages };
    this.frames = undefined;
    this.framesBytes = 0;
    this.framesMessages = 0;
    this.outstanding += 1;
    lifecycle.enter();
    this.queue.push(work);
    if (this.outstanding > LIMITS.socketObservationsMax) {
      const message = `more than ${LIMITS.socketObservationsMax} observations wait for their answers; wait for one before the next`;
      this.fail(new Failure("too_many_observations", message), echoedId(body));
      return;
    }
    this.work();
  }

  private close(): void {
    this.closing = true;
    this.queue.push({ observation: undefined, bytes: 0, messages: 0 });
    this.work();
  }

  private work(): void {
    if (this.working) return;
    this.working = true;
    this.guard(this.workAll());
  }

  private async workAll(): Promise<void> {
    for (let work = this.queue.shift(); work; work = this.queue.shift()) {
      this.pending.give(work.bytes, work.messages);
      if (work.observation) await this.observe(work.observation);
      else this.goodbye("session_close", 1000);
      if (this.over) return;
    }
    this.working = false;
    if (this.expired) this.expire();
    if (this.service.lifecycle.draining) this.drain();
  }

  private async observe(received: ReceivedObservation): Promise<void> {
    const session = present(this.session, "an open session");
    const { body } = received;
    const answer = await this.answer(received, session).finally(() => this.answered(received));
    if (answer instanceof Failure) {
      this.fail(answer, echoedId(body));
      return;
    }
    this.count(200);
    for (const part of answer) this.say(part);
  }

  private answered({ textBytes }: ReceivedObservation): void {
    this.outstanding -= 1;
    this.service.ingress.give(this.client.accountId, textBytes);
    this.service.lifecycle.leave();
  }

  private async answer(
    { body, frames, arrivedMs, late }: ReceivedObservation,
    session: OpenSession,
  ): Promise<Sent | Failure> {
    const { service, client } = this;
    const command = await this.command(body, frames, session, late).catch((error: unknown) => {
      this.drop(frames);
      throw error;
    });
    if (command instanceof Failure) {
      this.drop(frames);
      return command;
    }
    const generationId = makeId("gen_", service.clock);
    const asked = {
      accountId: client.accountId,
      generationId,
      signal: this.left.signal,
      holder: this,
      arrivedMs,
      starts: service.starts.episode,
    };
    const begun = await beginChunk(service, command, asked);
    if (begun instanceof Failure) return begun;
    if (begun.kind === "replay") return replayed(begun.reply, session.format);
    const { manifest } = session.served;
    const form = new SocketForm({ generationId, observationId: command.observation?.id, manifest }, session.format);
    const printed = await begun.finish(form.form);
    if (printed instanceof Failure) return printed;
    session.step += 1;
    return present(form.sent, "the message of a chunk that was printed");
  }

  private async command(
    body: JsonObject,
    frames: FrameGroup,
    session: OpenSession,
    late: boolean,
  ): Promise<ObserveCommand | Failure> {
    const principal = late ? shuttingDown() : await this.principal();
    if (principal instanceof Failure) return principal;
    const command = readObservation(body, session, frames);
    session.usesIds = !(command instanceof Failure) && command.observation !== undefined;
    return command;
  }

  /** Frames that nobody takes any more. */
  private drop(frames: FrameGroup | undefined): void {
    if (frames) this.guard(frames.close());
  }

  /** The key again: it may have been revoked since the connection was made. */
  private principal() {
    return principalOfHeader(this.service, this.client.authorization);
  }

  /** Says what went wrong; a failure that closes is the last word. */
  private fail(failure: Failure, observationId?: string): void {
    if (this.over) return;
    const { service } = this;
    if (failure.detail !== undefined) {
      service.log.error("observation failed", { code: failure.code, detail: failure.detail });
    }
    this.count(failure.status);
    const code = failure.close ?? this.firstImageClose(failure);
    this.say(errorText(failure, code !== undefined, observationId));
    if (code !== undefined) this.end(code, failure.wireCode);
  }

  /** A robot whose first frame cannot be read is set up wrongly (specification). */
  private firstImageClose({ code }: Failure): CloseCode | undefined {
    return code === "invalid_image" && this.session?.step === 0 ? 1008 : undefined;
  }

  private goodbye(reason: string, code: Goodbye): void {
    if (this.over) return;
    if (this.session) this.say(closedText(reason));
    this.end(code, reason);
  }

  private say(message: string | Uint8Array): void {
    if (this.over || this.outbox.send(message)) return;
    this.service.log.error("socket closed", { account: this.client.accountId, reason: "the client does not read" });
    this.end(1013, "the client does not read");
  }

  /** Once, whatever the reason: nothing of the connection stays but what runs and cannot be taken back. */
  private end(code: CloseCode | Goodbye, reason: string): void {
    if (this.over) return;
    this.over = true;
    this.left.abort();
    // A client that closes its session has said that it does not come back for it.
    this.letGo(this.closing ? "end" : "stay");
    this.drop(this.frames);
    for (const { observation } of this.queue.splice(0)) {
      if (!observation) continue;
      this.drop(observation.frames);
      this.answered(observation);
    }
    this.outbox.close(code, reason);
    this.onEnd();
  }

  private letGo(then: "end" | "stay"): void {
    if (!this.session) return;
    const { served, sessionId } = this.session;
    this.service.sessions.release({ ...this.name(served.manifest.id), sessionId, holder: this }, then);
  }

  private name(model: string): { accountId: string; model: string } {
    return { accountId: this.client.accountId, model };
  }

  /** Takes the message's part of what may be pending, or ends the connection. */
  private pend(bytes: number, messages: number): boolean {
    const failure = this.pending.take(bytes, messages);
    if (failure) this.fail(failure);
    return failure === undefined;
  }

  private count(status: number): void {
    this.service.requests.add({ route: "episode", status: String(status) });
  }

  /** Our own bug ends the connection; the log has the stack. */
  private guard(work: Promise<void>): void {
    void work.catch((error: unknown) => this.fault(error));
  }

  private fault(error: unknown): void {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.service.log.error("socket fault", { stack });
    this.fail(new Failure("internal_error", "the service failed by a fault of its own; connect again"));
  }
}

function noSession(): Failure {
  return new Failure("session_missing", "there is no session yet; send session.open first");
}

function tooMuch(): Failure {
  return new Failure("engine_unavailable", "too many messages wait already; connect again in some seconds");
}
