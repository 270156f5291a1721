/** Calls to a language model, to its provider itself or through the service, timed from outside. */
import http from "node:http";
import { atOnce } from "../at-once.ts";

export interface Target {
  /** For a plain call and a stream. */
  readonly url: string;
  readonly apiKey: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body of a request for `max` tokens, with an optional pause between them in ms. */
  body(stream: boolean, max: number, gapMs?: number): object;
}

/** The provider itself, or a gateway that speaks its protocol, by the model's name there. */
export function direct(url: string, model = "m", headers: Readonly<Record<string, string>> = {}): Target {
  const body: Target["body"] = (stream, max, gapMs) => ({
    model,
    messages: [{ role: "user", content: "Say hello." }],
    max_tokens: max,
    stream,
    ...(gapMs === undefined ? {} : { user: `gap=${gapMs}` }),
  });
  return { url: `${url}/chat/completions`, apiKey: "none", headers, body };
}

export function through({ url, apiKey }: { readonly url: string; readonly apiKey: string }, model: string): Target {
  const body: Target["body"] = (stream, max, gapMs) => ({
    model,
    input: "Say hello.",
    max_output_tokens: max,
    stream,
    ...(gapMs === undefined ? {} : { user: `gap=${gapMs}` }),
  });
  return { url: `${url}/v1/responses`, apiKey, body };
}

async function send(target: Target, body: string): Promise<Response> {
  const headers = { ...target.headers, authorization: `Bearer ${target.apiKey}`, "content-type": "application/json" };
  const response = await fetch(target.url, { method: "POST", headers, body });
  if (response.status !== 200) throw new Error(`${response.status}: ${(await response.text()).slice(0, 300)}`);
  return response;
}

/** Milliseconds of each call, one after another. */
export async function plainCalls(target: Target, count: number): Promise<number[]> {
  const body = JSON.stringify(target.body(false, 16));
  const ms: number[] = [];
  for (let call = 0; call < count; call += 1) {
    const before = performance.now();
    await (await send(target, body)).bytes();
    ms.push(performance.now() - before);
  }
  return ms;
}

/** Calls a second, over `connections` at once. */
export async function callsPerSecond(target: Target, connections: number, count: number): Promise<number> {
  const before = performance.now();
  await callsAtOnce(target, target.body(false, 16), connections, count);
  return (1000 * count) / (performance.now() - before);
}

async function callsAtOnce(target: Target, request: object, connections: number, count: number): Promise<void> {
  const body = JSON.stringify(request);
  await atOnce(connections, count, async () => {
    await (await send(target, body)).bytes();
    return undefined;
  });
}

export interface StreamTimes {
  /** Time from the request to the first token. */
  readonly firstMs: number;
  /** Time of each token from the provider's sending to its arrival. */
  readonly wayMs: number[];
}

const TIME = /\d{13}\.\d{3}/g;

/** One stream; a token is the time at which it was sent. */
export async function timedStream(target: Target, tokens: number, gapMs?: number): Promise<StreamTimes> {
  const before = performance.now();
  const response = await send(target, JSON.stringify(target.body(true, tokens, gapMs)));
  const decoder = new TextDecoder();
  const wayMs: number[] = [];
  let firstMs = Number.NaN;
  for await (const piece of response.body ?? []) {
    const now = performance.timeOrigin + performance.now();
    // Events at the end repeat the whole text.
    const sent = decoder.decode(piece, { stream: true }).matchAll(TIME);
    for (const [time] of sent) {
      if (wayMs.length === 0) firstMs = performance.now() - before;
      if (wayMs.length < tokens) wayMs.push(now - Number(time));
    }
  }
  return { firstMs, wayMs };
}

/** Streams without a pause, to their ends. */
export async function wholeStreams(target: Target, connections: number, count: number, tokens: number): Promise<void> {
  await callsAtOnce(target, target.body(true, tokens), connections, count);
}

/** Streams that have begun and stay open until they are disposed of. Bun's fetch would have 256 connections at most. */
export async function openStreams(target: Target, count: number, gapMs = 1000): Promise<AsyncDisposable> {
  const body = JSON.stringify(target.body(true, 65_536, gapMs));
  const agent = new http.Agent({ maxSockets: count });
  const begun = Array.from({ length: count }, () => openStream(target, body, agent));
  await Promise.all(begun);
  return {
    [Symbol.asyncDispose]: async () => agent.destroy(),
  };
}

/** Resolves when its first bytes are there; what comes is read, as a client would. */
async function openStream({ url, apiKey }: Target, body: string, agent: http.Agent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const request = http.request(url, { method: "POST", agent, headers }, (response) => {
    if (response.statusCode !== 200) reject(new Error(`a stream was answered with ${response.statusCode}`));
    response.on("data", () => resolve());
    // It ends with its agent.
    response.on("error", () => {});
  });
  request.on("error", reject);
  request.end(body);
  await promise;
}
