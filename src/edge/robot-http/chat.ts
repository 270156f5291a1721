/** `POST /v1/chat/completions`: fields, run, reply. */
import type { Principal } from "../../account/authenticate.ts";
import { describe } from "../../bundle/describe.ts";
import { Failure } from "../../error/core.ts";
import { beginChunk, type Printed } from "../../robot/attempt.ts";
import type { RobotDeps } from "../../robot/deps.ts";
import type { Replay } from "../../robot/replay.ts";
import { makeId } from "../../std/ids.ts";
import type { JsonObject } from "../http/json.ts";
import type { Reply } from "../http/reply.ts";
import type { Call } from "../http/route.ts";
import { type ObserveRequest, readChat } from "./checks.ts";
import type { DescribeCommand } from "./draft.ts";
import { chunkForm, describeText, type ReplyFacts, replyHeaders, serverTiming } from "./reply.ts";
import type { RobotHttpDeps } from "./routes.ts";
import { chatEvents } from "./stream.ts";

type ChatCall = Call<Principal, JsonObject>;

export async function chat(deps: RobotHttpDeps, call: ChatCall): Promise<Reply | Failure> {
  const command = readChat(call.body, deps.robot.catalog);
  if (command instanceof Failure) return command;
  if (command.kind === "describe") return describeReply(deps.robot, command);
  return await observe(deps, call, command);
}

function factsOf({ clock }: RobotDeps, { served }: DescribeCommand | ObserveRequest): ReplyFacts {
  return {
    generationId: makeId("gen_", clock),
    created: Math.floor(clock.unixMs() / 1000),
    manifest: served.manifest,
  };
}

function describeReply(robot: RobotDeps, command: DescribeCommand): Reply {
  const facts = factsOf(robot, command);
  return whole(robot, facts, command, describeText(facts, describe(facts.manifest)), replyHeaders(facts));
}

async function observe(
  { robot, starts }: RobotHttpDeps,
  { request: { signal }, principal: { accountId }, arrivedMs }: ChatCall,
  command: ObserveRequest,
): Promise<Reply | Failure> {
  const facts = factsOf(robot, command);
  const left = new AbortController();
  const leave = () => left.abort();
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave);
  const asked = {
    accountId,
    generationId: facts.generationId,
    signal: left.signal,
    arrivedMs,
    starts,
  };
  const begun = await beginChunk(robot, command, asked);
  if (begun instanceof Failure) return begun;
  if (begun.kind === "replay") return replayReply(robot, facts, command, begun);
  const finish = () => begun.finish(chunkForm(facts));
  const headers = replyHeaders(facts, begun.step);
  if (command.stream) {
    const text = async () => textOf(await finish());
    return { status: 200, body: chatEvents(robot.clock, facts, text, leave), headers };
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
  robot: RobotDeps,
  facts: ReplyFacts,
  command: ObserveRequest,
  { generationId, step, reply }: Replay,
): Reply {
  const headers = replyHeaders({ ...facts, generationId }, step);
  return whole(robot, facts, command, reply, { ...headers, "idempotent-replayed": "true" });
}

/** An answer that is there already, in the form that was asked for. */
function whole(
  { clock }: RobotDeps,
  facts: ReplyFacts,
  { stream }: DescribeCommand | ObserveRequest,
  text: string,
  headers: Record<string, string>,
): Reply {
  return { status: 200, body: stream ? chatEvents(clock, facts, async () => text) : text, headers };
}
