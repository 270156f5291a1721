/** `POST /v1/chat/completions`: fields to a command, then the answer as JSON or events, with its headers. */
import { describe } from "../../bundle/describe.ts";
import { STATIONS } from "../../engine/engine.ts";
import type { Principal } from "../../http/deps.ts";
import type { JsonObject } from "../../http/json.ts";
import type { Call, Reply } from "../../http/route.ts";
import type { Events } from "../../http/sse.ts";
import { LIMITS } from "../../limits.ts";
import { type Clock, unixSeconds } from "../../std/clock.ts";
import { Failure } from "../../std/failure.ts";
import { makeId } from "../../std/ids.ts";
import type { Durations } from "../../std/metrics.ts";
import { type Answer, type AnswerHead, chunkText, usageObject } from "../answer.ts";
import { observe, type PrintedAnswer } from "../attempt.ts";
import type { Served } from "../catalog.ts";
import type { RobotDeps } from "../command.ts";
import { ROBOT } from "../errors.ts";
import { type DescribeCommand, type ObserveRequest, readChat } from "./checks.ts";

export interface RobotHttpDeps {
  readonly robot: RobotDeps;
  /** The time from an observation's arrival to the model's start, milliseconds. */
  readonly starts: { readonly chat: Durations };
}

type ChatCall = Call<Principal, JsonObject>;

export async function chat(deps: RobotHttpDeps, call: ChatCall): Promise<Reply | Failure> {
  const command = readChat(call.body, deps.robot.catalog);
  if (command instanceof Failure) return command;
  if (command.kind === "describe") return described(deps.robot, command);
  return await chunk(deps, command, call);
}

function described({ clock }: RobotDeps, { served, stream }: DescribeCommand): Reply {
  const { manifest, warning } = served;
  const completion = {
    ...{ id: makeId("gen_", clock), created: unixSeconds(clock), model: manifest.id },
    content: describe(manifest, warning),
    usage: usageObject({ prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0 }),
  };
  const body = stream ? completionEvents(clock, completion, async () => completion) : completionText(completion);
  return { status: 200, body, headers: generationHeaders(completion.id, served, null), unpaid: true };
}

async function chunk(
  { robot, starts }: RobotHttpDeps,
  command: ObserveRequest,
  { request, requestId, principal: { accountId, keyPublicId: keyId }, bodyMs: arrivedMs }: ChatCall,
): Promise<Reply | Failure> {
  // The request's signal aborts for a plain reply; a stream's reader is cancelled, which calls `leave`.
  const left = new AbortController();
  const leave = () => left.abort();
  if (request.signal.aborted) leave();
  request.signal.addEventListener("abort", leave);
  const { served, stream } = command;
  const caller = { requestId, accountId, keyId, arrivedMs, signal: left.signal, streams: stream };
  const started = await observe(robot, command, caller);
  if (started instanceof Failure) return started;
  const { generationId: id, created, replayed } = started;
  const answered = async <T>(print: (answer: Answer) => T): Promise<PrintedAnswer<T> | Failure> => {
    const outcome = await started.answered(print);
    if (outcome instanceof Failure) return overHttp(outcome);
    if (outcome.times) starts.chat.add(outcome.times.startMs);
    return outcome;
  };
  const headers = {
    ...generationHeaders(id, served, started.step),
    ...(replayed ? { "idempotent-replayed": "true" } : {}),
  };
  if (stream) {
    const finish = async () => {
      const outcome = await answered(chunkCompletion);
      return outcome instanceof Failure ? outcome : outcome.printed;
    };
    const body = completionEvents(robot.clock, { id, created, model: served.manifest.id }, finish, leave);
    return { status: 200, body, headers, ...(replayed && { unpaid: true }) };
  }
  const plain = await answered((answer) => ({
    body: completionText(chunkCompletion(answer)),
    head: answer.head,
  }));
  if (plain instanceof Failure) return plain;
  const { printed, times } = plain;
  if (times === undefined) return { status: 200, body: printed.body, headers, unpaid: true };
  const timing = { "server-timing": serverTiming(printed.head, times.commitMs) };
  return { status: 200, body: printed.body, headers: { ...headers, ...timing } };
}

/** The specification has `engine_protocol_error` on sockets only; over HTTP it is `model_failure`. */
function overHttp(failure: Failure): Failure {
  if (failure.row !== ROBOT.engine_protocol_error) return failure;
  const detail = failure.detail === undefined ? {} : { detail: failure.detail };
  const message = "the engine's answer is not one to this observation; nothing was charged, repeat the observation";
  return new Failure(ROBOT.model_failure, message, detail);
}

/** What is known of an answer before the model has ended. */
type Generation = Pick<AnswerHead, "id" | "created" | "model">;

/** A finished answer: a chunk or a description. */
interface Completion extends Generation {
  readonly content: string;
  readonly usage: ReturnType<typeof usageObject>;
}

function chunkCompletion(answer: Answer): Completion {
  const { id, created, model, usage } = answer.head;
  return { id, created, model, content: chunkText(answer), usage: usageObject(usage) };
}

function completionText({ id, created, model, content, usage }: Completion): string {
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  return JSON.stringify({ id, object: "chat.completion", created, model, choices, usage });
}

const PROCESSING = ": processing\n\n";
const DONE = "data: [DONE]\n\n";

/** `: processing` at once and every 250 ms, then the events of the completion that `finish` comes to. */
function completionEvents(
  clock: Clock,
  generation: Generation,
  finish: () => Promise<Completion | Failure>,
  left: () => void = () => {},
): Events {
  return {
    unsentBytesMax: LIMITS.sseUnsentBytesMax,
    async write(send) {
      send(PROCESSING);
      const stop = clock.every(LIMITS.processingMs, () => send(PROCESSING));
      const outcome = await finish().finally(stop);
      if (outcome instanceof Failure) return outcome;
      const delta = { role: "assistant", content: outcome.content };
      send(event(outcome, { index: 0, delta, finish_reason: null }));
      send(event(outcome, { index: 0, delta: {}, finish_reason: "stop" }, { usage: outcome.usage }));
      send(DONE);
      return undefined;
    },
    failed: (failure) => [event(generation, { index: 0, delta: {}, finish_reason: "error" }, failure.body()), DONE],
    left,
  };
}

function event({ id, created, model }: Generation, choice: object, more: object = {}): string {
  const head = { id, object: "chat.completion.chunk", created, model, choices: [choice] };
  return `data: ${JSON.stringify({ ...head, ...more })}\n\n`;
}

/** Headers that are known before the model has ended. `step`: null where the client named no session. */
function generationHeaders(id: string, { warning }: Served, step: number | null): Record<string, string> {
  return {
    "x-generation-id": id,
    ...(step === null ? {} : { "x-session-step": String(step) }),
    // Rows that must never move an arm are marked wherever a user could meet them.
    ...(warning === undefined ? {} : { "x-tendon-bundle": "reference" }),
  };
}

/** Time at each station and until the record was durable, for browsers and proxies. */
function serverTiming({ timing_ms }: AnswerHead, commitMs: number): string {
  const commit = Math.round(commitMs * 1000) / 1000;
  return [...STATIONS.map((station) => `${station};dur=${timing_ms[station]}`), `commit;dur=${commit}`].join(", ");
}
