/** `POST /v1/chat/completions`: fields to a command; then the attempt's answer, printed. */

import { describe } from "../../bundle/describe.ts";
import type { JsonObject } from "../../http/json.ts";
import type { Principal } from "../../http/principal.ts";
import type { Reply } from "../../http/reply.ts";
import type { Call } from "../../http/route.ts";
import { Failure } from "../../std/failure.ts";
import { makeId } from "../../std/ids.ts";
import { type Answered, observe, type Started } from "../attempt.ts";
import type { RobotDeps } from "../deps.ts";
import { ROBOT } from "../errors.ts";
import { type DescribeCommand, type ObserveRequest, readChat } from "./checks.ts";
import {
  chunkCompletion,
  completionEvents,
  completionText,
  descriptionCompletion,
  generationHeaders,
  serverTiming,
} from "./print.ts";
import type { RobotHttpDeps } from "./routes.ts";

type ChatCall = Call<Principal, JsonObject>;

export async function chat(deps: RobotHttpDeps, call: ChatCall): Promise<Reply | Failure> {
  const command = readChat(call.body, deps.robot.catalog);
  if (command instanceof Failure) return command;
  if (command.kind === "describe") return described(deps.robot, command);
  return await chunk(deps, command, call);
}

function described({ clock }: RobotDeps, { served, stream }: DescribeCommand): Reply {
  const { manifest, warning } = served;
  const created = Math.floor(clock.unixMs() / 1000);
  const generation = { id: makeId("gen_", clock), created, model: manifest.id };
  const completion = descriptionCompletion(generation, describe(manifest, warning));
  const headers = generationHeaders(generation.id, served, null);
  const body = stream ? completionEvents(clock, generation, async () => completion) : completionText(completion);
  return { status: 200, body, headers, unpaid: true };
}

async function chunk(
  deps: RobotHttpDeps,
  command: ObserveRequest,
  { request, requestId, principal: { accountId, keyPublicId: keyId }, bodyMs }: ChatCall,
): Promise<Reply | Failure> {
  // For a plain reply the request's signal aborts; for a stream its reader is cancelled, which calls `leave`.
  const left = new AbortController();
  const leave = () => left.abort();
  if (request.signal.aborted) leave();
  request.signal.addEventListener("abort", leave);
  const started = await observe(deps.robot, command, {
    requestId,
    accountId,
    keyId,
    arrivedMs: bodyMs,
    signal: left.signal,
    streams: command.stream,
  });
  if (started instanceof Failure) return started;
  const { manifest } = command.served;
  const headers = {
    ...generationHeaders(started.generationId, command.served, started.step),
    ...(started.replayed ? { "idempotent-replayed": "true" } : {}),
  };
  if (command.stream) {
    const generation = { id: started.generationId, created: started.created, model: manifest.id };
    const finish = async () => {
      const outcome = await answered(deps, started, chunkCompletion);
      return outcome instanceof Failure ? outcome : outcome.printed;
    };
    const body = completionEvents(deps.robot.clock, generation, finish, leave);
    return { status: 200, body, headers, ...(started.replayed && { unpaid: true }) };
  }
  const plain = await answered(deps, started, (answer) => ({
    body: completionText(chunkCompletion(answer)),
    head: answer.head,
  }));
  if (plain instanceof Failure) return plain;
  const { printed, times } = plain;
  if (times === undefined) return { status: 200, body: printed.body, headers, unpaid: true };
  const timing = { "server-timing": serverTiming(printed.head, times.commitMs) };
  return { status: 200, body: printed.body, headers: { ...headers, ...timing } };
}

/** The printed answer, once it is durable. */
async function answered<T>(
  { starts }: RobotHttpDeps,
  started: Started,
  print: Parameters<typeof started.answered<T>>[0],
): Promise<Answered<T> | Failure> {
  const outcome = await started.answered(print);
  if (outcome instanceof Failure) return overHttp(outcome);
  if (outcome.times) starts.add(outcome.times.startMs);
  return outcome;
}

/** The specification has `engine_protocol_error` on sockets only; over HTTP it is `model_failure`. */
function overHttp(failure: Failure): Failure {
  if (failure.row !== ROBOT.engine_protocol_error) return failure;
  const detail = failure.detail === undefined ? {} : { detail: failure.detail };
  const message = "the engine's answer is not one to this observation; nothing was charged, repeat the observation";
  return new Failure(ROBOT.model_failure, message, detail);
}
