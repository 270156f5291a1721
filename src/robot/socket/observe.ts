/** One observation of an open session to the messages that answer it. */
import type { JsonObject } from "../../http/json.ts";
import { Failure } from "../../std/failure.ts";
import { observe } from "../attempt.ts";
import type { Caller, ObserveCommand } from "../command.ts";
import { shuttingDown } from "../interruptions.ts";
import type { Holder } from "../session/table.ts";
import { discard, type FrameGroup, type FrameIntake } from "./frames.ts";
import { chunkMessages, type Opening, readObservation, type Sent } from "./messages.ts";
import type { RobotSocketDeps } from "./sockets.ts";

/** The account of a connection, and the header that authenticated it. `requestId` is the handshake's. */
export interface Client extends Pick<Caller, "requestId" | "accountId" | "keyId"> {
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
  /** Size of its text, which is in memory until it is answered. */
  readonly textBytes: number;
  readonly frames: FrameGroup;
  /** Monotonic ms. */
  readonly arrivedMs: number;
  /** It came after the signal to shut down. */
  readonly late: boolean;
}

/** The connection of an observation. */
interface Connection extends Pick<Caller, "signal" | "goesOn"> {
  readonly service: RobotSocketDeps;
  readonly client: Client;
  readonly holder: Holder;
}

export interface ObservationReply {
  readonly sent: Sent;
  /** It is an earlier chunk again, which is not charged. */
  readonly replayed: boolean;
}

/** Gives the frames back, however the observation ends; the session's step moves on with its chunk. */
export async function answerObservation(
  { service, client, ...connection }: Connection,
  session: OpenSession,
  received: ReceivedObservation,
): Promise<ObservationReply | Failure> {
  let command: ObserveCommand | Failure | undefined;
  try {
    command = await readCommand(service, client, session, received);
  } finally {
    // A command's frames are the attempt's. Without a command they are given back here, also after a fault of our own.
    if (command === undefined || command instanceof Failure) discard(received.frames, service, client);
  }
  if (command instanceof Failure) return command;
  session.intake.digests = command.observationId !== undefined;
  const { requestId, accountId, keyId } = client;
  const caller = { requestId, accountId, keyId, ...connection, arrivedMs: received.arrivedMs };
  const started = await observe(service, command, caller);
  if (started instanceof Failure) return started;
  const { observationId } = command;
  const { replayed } = started;
  const outcome = await started.answered((answer) =>
    chunkMessages(answer, session.format, { observationId, replayed }),
  );
  if (outcome instanceof Failure) return outcome;
  if (outcome.times) service.starts.episode.add(outcome.times.startMs);
  if (!replayed) session.step += 1;
  return { sent: outcome.printed, replayed };
}

async function readCommand(
  service: RobotSocketDeps,
  client: Client,
  session: OpenSession,
  { body, frames, late }: ReceivedObservation,
): Promise<ObserveCommand | Failure> {
  // The key is checked again: it may have been revoked since the connection was made.
  const principal = late ? shuttingDown() : await service.authenticate(client.authorization);
  if (principal instanceof Failure) return principal;
  return readObservation(body, session, frames);
}
