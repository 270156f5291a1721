/** One observation of an open session to the messages that answer it. */
import { Failure } from "../../error/core.ts";
import { beginChunk } from "../../robot/attempt.ts";
import type { ObserveCommand } from "../../robot/command.ts";
import { shuttingDown } from "../../robot/interruption.ts";
import type { Holder } from "../../robot/session/table.ts";
import { present } from "../../std/assert.ts";
import { makeId } from "../../std/ids.ts";
import type { JsonObject } from "../http/json.ts";
import { principalOf } from "../http/principal.ts";
import { replayed, type Sent, SocketForm } from "./chunk.ts";
import type { RobotSocketDeps } from "./deps.ts";
import type { FrameGroup } from "./frames.ts";
import type { FrameIntake } from "./intake.ts";
import { type Opening, readObservation } from "./messages.ts";

/** Whose connection it is, and the header that says so. */
export interface Client {
  readonly accountId: string;
  readonly authorization: string | null;
}

export interface OpenSession extends Opening {
  readonly sessionId: string;
  readonly intake: FrameIntake;
  /** Index of the next chunk. */
  step: number;
}

export interface ReceivedObservation {
  readonly body: JsonObject;
  /** Of its text, which stays in memory until it is answered. */
  readonly textBytes: number;
  readonly frames: FrameGroup;
  /** Monotonic ms. */
  readonly arrivedMs: number;
  /** It came after the signal to end. */
  readonly late: boolean;
}

interface Asker {
  readonly service: RobotSocketDeps;
  readonly client: Client;
  readonly holder: Holder;
  /** Tells that the connection is gone. */
  readonly signal: AbortSignal;
}

/** The frames are given back when nothing needs them any more; the session's step moves on with its chunk. */
export async function observe(
  { service, client, holder, signal }: Asker,
  session: OpenSession,
  received: ReceivedObservation,
): Promise<Sent | Failure> {
  const command = await readCommand(service, client, session, received);
  if (command instanceof Failure) return command;
  const { accountId } = client;
  const { arrivedMs } = received;
  const generationId = makeId("gen_", service.clock);
  const asked = { accountId, generationId, signal, holder, arrivedMs, starts: service.starts.episode };
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

async function readCommand(
  service: RobotSocketDeps,
  client: Client,
  session: OpenSession,
  { body, frames, late }: ReceivedObservation,
): Promise<ObserveCommand | Failure> {
  let read = false;
  try {
    // The key again: it may have been revoked since the connection was made.
    const principal = late ? shuttingDown() : await principalOf(service, client.authorization);
    if (principal instanceof Failure) return principal;
    const command = readObservation(body, session, frames);
    read = !(command instanceof Failure);
    session.intake.digests = !(command instanceof Failure) && command.observation !== undefined;
    return command;
  } finally {
    // A command has them from here on.
    if (!read) void frames.close();
  }
}
