/** `POST /v1/chat/completions`: key, body, fields; then the attempt's answer, printed. */
import { describe } from "../../bundle/describe.ts";
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import { observe, type Started } from "../../robot/attempt.ts";
import { shuttingDown } from "../../robot/interruptions.ts";
import { makeId } from "../../std/ids.ts";
import type { Reply } from "../http/answer.ts";
import { readBody } from "../http/body.ts";
import { parseObject } from "../http/json.ts";
import { principalOf } from "../http/principal.ts";
import type { Service } from "../service.ts";
import { type DescribeCommand, type ObserveRequest, readChat } from "./checks.ts";
import {
  chunkCompletion,
  completionEvents,
  completionText,
  descriptionCompletion,
  generationHeaders,
  serverTiming,
} from "./print.ts";

export async function chat(service: Service, request: Request): Promise<Reply | Failure> {
  const arrivedMs = service.clock.monotonicMs();
  const principal = await principalOf(service, request);
  if (principal instanceof Failure) return principal;
  if (service.lifecycle.draining) return shuttingDown();
  const { ingress, clock } = service;
  const { accountId } = principal;
  const body = await readBody(request, { bytesMax: LIMITS.robotBodyBytesMax, ingress, owner: accountId, clock });
  if (body instanceof Failure) return body;
  try {
    // A body may take long to arrive: nothing new begins after the signal to shut down.
    if (service.lifecycle.draining) return shuttingDown();
    const object = parseObject(body.bytes);
    if (typeof object === "string") return new Failure(ROBOT.invalid_body, object);
    const command = readChat(object, service.catalog);
    if (command instanceof Failure) return command;
    if (command.kind === "describe") return described(service, command);
    return await chunk(service, command, { accountId, arrivedMs, left: request.signal });
  } finally {
    body.release();
  }
}

function described({ clock }: Service, { served: { manifest }, stream }: DescribeCommand): Reply {
  const created = Math.floor(clock.unixMs() / 1000);
  const generation = { id: makeId("gen_", clock), created, model: manifest.id };
  const completion = descriptionCompletion(generation, describe(manifest));
  const headers = generationHeaders(generation.id, manifest, null);
  const body = stream ? completionEvents(clock, generation, async () => completion) : completionText(completion);
  return { status: 200, body, headers };
}

interface Caller {
  readonly accountId: string;
  readonly arrivedMs: number;
  /** Aborts when the connection is gone. */
  readonly left: AbortSignal;
}

async function chunk(service: Service, command: ObserveRequest, caller: Caller): Promise<Reply | Failure> {
  // For a plain reply the request's signal aborts; for a stream its reader is cancelled, which calls `leave`.
  const left = new AbortController();
  const leave = () => left.abort();
  if (caller.left.aborted) leave();
  caller.left.addEventListener("abort", leave);
  const { accountId, arrivedMs } = caller;
  const started = await observe(service, command, { accountId, arrivedMs, signal: left.signal });
  if (started instanceof Failure) return started;
  const { manifest } = command.served;
  const headers = {
    ...generationHeaders(started.generationId, manifest, started.step),
    ...(started.replayed ? { "idempotent-replayed": "true" } : {}),
  };
  if (command.stream) {
    const generation = { id: started.generationId, created: started.created, model: manifest.id };
    const finish = async () => await answered(service, started, chunkCompletion);
    return { status: 200, body: completionEvents(service.clock, generation, finish, leave), headers };
  }
  const plain = await answered(service, started, (answer) => ({
    body: completionText(chunkCompletion(answer)),
    timing: serverTiming(answer.head),
  }));
  if (plain instanceof Failure) return plain;
  const timing: Record<string, string> = started.replayed ? {} : { "server-timing": plain.timing };
  return { status: 200, body: plain.body, headers: { ...headers, ...timing } };
}

/** The printed answer, once it is durable. */
async function answered<T>(
  { starts }: Service,
  started: Started,
  print: Parameters<typeof started.answered<T>>[0],
): Promise<T | Failure> {
  const outcome = await started.answered(print);
  if (outcome instanceof Failure) return overHttp(outcome);
  if (outcome.startMs !== undefined) starts.chat.add(outcome.startMs);
  return outcome.printed;
}

/** The specification has `engine_protocol_error` on sockets only; over HTTP it is `model_failure`. */
function overHttp(failure: Failure): Failure {
  if (failure.row !== ROBOT.engine_protocol_error) return failure;
  const detail = failure.detail === undefined ? {} : { detail: failure.detail };
  const message = "the engine's answer is not one to this observation; nothing was charged, repeat the observation";
  return new Failure(ROBOT.model_failure, message, detail);
}
