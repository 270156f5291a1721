/** `POST /v1/chat/completions`: key, body, fields, run, reply. */
import { describe } from "../../bundle/describe.ts";
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import { beginChunk, type Printed } from "../../robot/attempt.ts";
import { shuttingDown } from "../../robot/interruption.ts";
import type { Replay } from "../../robot/replay.ts";
import { makeId } from "../../std/ids.ts";
import type { Reply } from "../http/answer.ts";
import { readBody } from "../http/body.ts";
import { parseObject } from "../http/json.ts";
import { principalOf } from "../http/principal.ts";
import type { Service } from "../service.ts";
import { type ObserveRequest, readChat } from "./checks.ts";
import type { DescribeCommand } from "./draft.ts";
import { chunkForm, describeText, type ReplyFacts, replyHeaders, serverTiming } from "./reply.ts";
import { chatEvents } from "./stream.ts";

export async function chat(service: Service, request: Request): Promise<Reply | Failure> {
  const arrivedMs = service.clock.monotonicMs();
  const principal = await principalOf(service, request);
  if (principal instanceof Failure) return principal;
  if (service.lifecycle.draining) return shuttingDown();
  const { ingress, clock } = service;
  const body = await readBody(request, {
    bytesMax: LIMITS.robotBodyBytesMax,
    ingress,
    owner: principal.accountId,
    clock,
  });
  if (body instanceof Failure) return body;
  try {
    // A body may take long to arrive: nothing new begins after the signal to end.
    if (service.lifecycle.draining) return shuttingDown();
    const object = parseObject(body.bytes);
    if (typeof object === "string") return new Failure(ROBOT.invalid_body, object);
    const command = readChat(object, service.catalog);
    if (command instanceof Failure) return command;
    if (command.kind === "describe") return describeReply(service, command);
    return await observe(service, principal.accountId, command, request.signal, arrivedMs);
  } finally {
    body.release();
  }
}

function factsOf({ clock }: Service, { served }: DescribeCommand | ObserveRequest): ReplyFacts {
  return {
    generationId: makeId("gen_", clock),
    created: Math.floor(clock.unixMs() / 1000),
    manifest: served.manifest,
  };
}

function describeReply(service: Service, command: DescribeCommand): Reply {
  const facts = factsOf(service, command);
  return whole(service, facts, command, describeText(facts, describe(facts.manifest)), replyHeaders(facts));
}

async function observe(
  service: Service,
  accountId: string,
  command: ObserveRequest,
  signal: AbortSignal,
  arrivedMs: number,
): Promise<Reply | Failure> {
  const facts = factsOf(service, command);
  const left = new AbortController();
  const leave = () => left.abort();
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave);
  const asked = {
    accountId,
    generationId: facts.generationId,
    signal: left.signal,
    arrivedMs,
    starts: service.starts.chat,
  };
  const begun = await beginChunk(service, command, asked);
  if (begun instanceof Failure) return begun;
  if (begun.kind === "replay") return replayReply(service, facts, command, begun);
  const finish = () => begun.finish(chunkForm(facts));
  const headers = replyHeaders(facts, begun.step);
  if (command.stream) {
    const text = async () => textOf(await finish());
    return { status: 200, body: chatEvents(service.clock, facts, text, leave), headers };
  }
  const printed = await finish();
  if (printed instanceof Failure) return printed;
  return { status: 200, body: printed.text, headers: { ...headers, ...serverTiming(printed.micros) } };
}

function textOf(printed: Printed | Failure): string | Failure {
  return printed instanceof Failure ? printed : printed.text;
}

/** Byte for byte what the first request got. */
function replayReply(
  service: Service,
  facts: ReplyFacts,
  command: ObserveRequest,
  { generationId, step, reply }: Replay,
): Reply {
  const headers = replyHeaders({ ...facts, generationId }, step);
  return whole(service, facts, command, reply, { ...headers, "idempotent-replayed": "true" });
}

/** An answer that is there already, in the form that was asked for. */
function whole(
  { clock }: Service,
  facts: ReplyFacts,
  { stream }: DescribeCommand | ObserveRequest,
  text: string,
  headers: Record<string, string>,
): Reply {
  return { status: 200, body: stream ? chatEvents(clock, facts, async () => text) : text, headers };
}
