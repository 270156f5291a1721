/** `POST /v1/chat/completions`: key, body, fields, run, reply. */
import { authenticate } from "../../account/authenticate.ts";
import { describe } from "../../bundle/describe.ts";
import { Failure } from "../../error.ts";
import { LIMITS } from "../../limits.ts";
import { makeId } from "../../std/ids.ts";
import type { Reply } from "../answer.ts";
import { readBody } from "../body.ts";
import { parseObject } from "../json.ts";
import type { Service } from "../service.ts";
import { readChat } from "./checks.ts";
import { chunkReply, describeReply } from "./reply.ts";
import { runChunk } from "./run.ts";

export async function chat(service: Service, request: Request): Promise<Reply | Failure> {
  const principal = await authenticate(request.headers.get("authorization"), service.store);
  if (principal instanceof Failure) return principal;
  if (service.lifecycle.draining) return shuttingDown();
  const { ingress, clock } = service;
  const body = await readBody(request, { bytesMax: LIMITS.robotBodyBytesMax, ingress, clock });
  if (body instanceof Failure) return body;
  try {
    // A body may take long to arrive: nothing new begins after the signal to end.
    if (service.lifecycle.draining) return shuttingDown();
    return await reply(service, principal.accountId, body.bytes, request.signal);
  } finally {
    body.release();
  }
}

function shuttingDown(): Failure {
  return new Failure("engine_unavailable", "the service is shutting down; retry in some seconds");
}

async function reply(
  service: Service,
  accountId: string,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<Reply | Failure> {
  const object = parseObject(bytes);
  if (typeof object === "string") return new Failure("invalid_body", object);
  const command = readChat(object, service.catalog);
  if (command instanceof Failure) return command;
  const facts = {
    generationId: makeId("gen_", service.clock),
    created: Math.floor(service.clock.unixMs() / 1000),
    manifest: command.served.manifest,
  };
  if (command.kind === "describe") return describeReply(facts, describe(facts.manifest));
  const chunk = await runChunk(service, accountId, command, signal);
  return chunk instanceof Failure ? chunk : chunkReply(facts, chunk);
}
