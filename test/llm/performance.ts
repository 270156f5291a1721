/** Plays one script to one request. */
import { BodyWriter, turn } from "./body-writer.ts";
import { chatAnswer, chatChunks, isChatDelta } from "./chat-script.ts";
import type { Connection } from "./connection.ts";
import { failureEvents, isResponsesDelta, responsesAnswer, responsesEvents } from "./responses-script.ts";
import type { Cut, Delivery, FailInside, Good, HangInside, Raw, Script } from "./script.ts";
import { sseEvents } from "./sse-text.ts";

/** What of a request decides how it is answered. */
export interface Asked {
  readonly protocol: "chat" | "responses";
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly id: string;
  readonly model: string;
}

/** What becomes of the connection after it. */
type After = "keep" | "end" | "reset" | "hang";

type Correct = Good | Cut | HangInside | FailInside;

const JSON_TYPE = { "content-type": "application/json" };
const SSE_TYPE = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
const FAILURE = "The model failed.";

export async function perform(connection: Connection, asked: Asked, script: Script): Promise<After> {
  if (script.kind === "hang") return "hang";
  if (script.kind === "raw") return await raw(connection, script);
  if (script.kind === "refuse") {
    const { status, headers = {}, body = errorBody(`Scripted refusal with ${status}.`) } = script;
    return await plain(connection, status, body, { ...JSON_TYPE, ...headers });
  }
  if (asked.stream) return await stream(connection, asked, script);
  if (script.kind === "fail_inside")
    return await plain(connection, 500, errorBody(script.message ?? FAILURE), JSON_TYPE);
  const body = asked.protocol === "chat" ? chatAnswer(script, asked) : responsesAnswer(script, asked);
  return await plain(connection, 200, body, JSON_TYPE, script);
}

/** An error as OpenAI writes it. */
export function errorBody(message: string): object {
  return { error: { message, type: "scripted_error", param: null, code: null } };
}

async function raw(connection: Connection, script: Raw): Promise<After> {
  const { status = 200, headers = SSE_TYPE, last = "end" } = script;
  const bare = status === "none";
  const body = bare ? undefined : await BodyWriter.begin(connection, status, headers);
  for (const [index, chunk] of script.chunks.entries()) {
    if (index > 0) await turn();
    if (index > 0) await connection.pause(script.gapMs ?? 0);
    await (body ?? connection).write(chunk);
  }
  if (last !== "end") {
    await connection.pause(script.gapMs ?? 0);
    return last === "fin" ? "end" : last;
  }
  await body?.end();
  // Bytes without a head tell nobody where they end.
  return bare ? "end" : "keep";
}

async function plain(
  connection: Connection,
  status: number,
  content: string | object,
  headers: Readonly<Record<string, string>>,
  script?: Correct,
): Promise<After> {
  const bytes = Buffer.from(typeof content === "string" ? content : JSON.stringify(content));
  const length = { "content-length": String(bytes.length) };
  const body = await BodyWriter.begin(connection, status, { ...headers, ...length }, script);
  const whole = script === undefined || script.kind === "answer" || script.kind === "fail_inside";
  await body.write(whole ? bytes : bytes.subarray(0, bytes.length >> 1));
  if (whole) return afterAll(script);
  await connection.pause(script.gapMs ?? 0);
  return afterPart(script);
}

async function stream(connection: Connection, asked: Asked, script: Correct): Promise<After> {
  const body = await BodyWriter.begin(connection, 200, SSE_TYPE, script);
  const { events, deltas } = textsOf(asked, script);
  const stop = script.kind === "answer" ? events.length : stopOf(deltas, script.after);
  for (const [index, event] of events.slice(0, stop).entries()) {
    if (index > 0) await connection.pause(script.gapMs ?? 0);
    await body.write(event);
  }
  if (script.kind === "fail_inside") for (const event of failureTexts(asked, script, stop)) await body.write(event);
  if (script.kind === "hang_inside") return "hang";
  if (script.kind === "cut" && script.manner !== "polite") {
    const next = events[stop] ?? "";
    await body.write(next.slice(0, next.length >> 1));
    // So that a reset does not overtake what was sent before it; with a gap, the caller has read all of it.
    await turn();
    await connection.pause(script.gapMs ?? 0);
    return afterPart(script);
  }
  await body.end();
  return afterAll(script);
}

/** How many events go out whole: all up to the given number of deltas. */
function stopOf(deltas: readonly boolean[], after: number): number {
  const places = deltas.flatMap((isDelta, index) => (isDelta ? [index] : []));
  return after === 0 ? (places[0] ?? 0) : (places[Math.min(after, places.length) - 1] ?? -1) + 1;
}

function afterAll(delivery: Delivery | undefined): After {
  return delivery?.connection === undefined && delivery?.framing !== "until_close" ? "keep" : "end";
}

function afterPart(script: Cut | HangInside): After {
  if (script.kind === "hang_inside") return "hang";
  return script.manner === "reset" ? "reset" : "end";
}

/** The events as texts, and which of them are deltas. */
function textsOf(asked: Asked, script: Correct): { events: string[]; deltas: boolean[] } {
  if (asked.protocol === "chat") {
    const chunks = chatChunks(script, asked);
    return { events: sseEvents(chunks, { ...script, done: true }), deltas: chunks.map(isChatDelta) };
  }
  const events = responsesEvents(script, asked);
  return { events: sseEvents(events, script), deltas: events.map(isResponsesDelta) };
}

function failureTexts(asked: Asked, script: FailInside, before: number): string[] {
  const message = script.message ?? FAILURE;
  // Chat has no event for it: vLLM and SGLang put the error where a chunk would be, and end the stream.
  if (asked.protocol === "chat") return sseEvents([errorBody(message)], { ...script, done: true });
  return sseEvents(failureEvents(before, message, asked), script);
}
