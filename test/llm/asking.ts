/** One request to a stage in each way that a client has, and what came of it in one form. */
import { expect } from "bun:test";
import type { OutputItem, ResponseObject } from "../../src/llm/output/object.ts";
import { type Came, eventsOf, JOB, LIVE, type LlmStage, SECRET } from "./stage.ts";

export const PROTOCOLS = ["chat", "responses"] as const;

/** `live`: JSON at once; `stream`: live events; `job`: polled; `buffered`: a job's events. */
export const MANNERS = ["live", "stream", "job", "buffered"] as const;
export type Manner = (typeof MANNERS)[number];

export interface Told {
  readonly status: number;
  readonly headers: Headers;
  /** All that came, headers too. */
  readonly text: string;
  /** The code of the HTTP error, else of the response that has failed. */
  readonly code: string | undefined;
  /** What the error object or the failed response says. */
  readonly message: string | undefined;
  readonly param: string | undefined;
  /** The response at its end. */
  readonly response: ResponseObject | undefined;
  readonly events: readonly Came[];
  /** The events ended with `[DONE]`. */
  readonly done: boolean;
}

type Headers_ = Readonly<Record<string, string>>;

/** Asks, and waits for the end. */
export async function ask(stage: LlmStage, manner: Manner, body: object = {}, headers: Headers_ = {}): Promise<Told> {
  const background = manner === "job" || manner === "buffered";
  const stream = manner === "stream" || manner === "buffered";
  const sent = { model: background ? JOB : LIVE, ...body, ...(stream ? { stream } : {}) };
  const told = await toldBy(await stage.post(sent, headers));
  if (manner !== "job" || !told.response) return told;
  const ended = await ending(stage, told.response.id);
  const polled = await toldBy(ended);
  return { ...polled, headers: told.headers, text: told.text + polled.text };
}

/** The answer of `GET` once the response is over. */
export async function ending(stage: LlmStage, id: string): Promise<Response> {
  for (let tries = 0; tries < 2_000; tries += 1) {
    const got = await stage.get(`/v1/responses/${id}`);
    const { status } = (await got.clone().json()) as { status?: unknown };
    if (status !== "queued" && status !== "in_progress") return got;
    await Bun.sleep(5);
  }
  throw new Error(`the response ${id} does not end`);
}

export async function toldBy(answer: Response): Promise<Told> {
  const body = await answer.text();
  const { status, headers } = answer;
  const text = `${JSON.stringify([...headers])}\n${body}`;
  const nothing = { status, headers, text, param: undefined, events: [], done: false };
  if (headers.get("content-type")?.startsWith("text/event-stream")) {
    const { events, done } = eventsOf(body);
    const last = events.at(-1);
    const response = last?.response as ResponseObject | undefined;
    const error = response ? response.error : last;
    const { code, message } = (error ?? {}) as { code?: string; message?: string };
    return { ...nothing, code, message, response, events, done };
  }
  const said = JSON.parse(body) as ResponseObject & {
    error?: { code: string; message: string; param?: string } | null;
  };
  const { code, message, param } = said.error ?? ({} as { code?: string; message?: string; param?: string });
  return { ...nothing, code, message, param, response: said.object === "response" ? said : undefined };
}

/** The text of a response's messages, from its items. */
export function textIn(output: readonly OutputItem[] | undefined): string {
  const parts = (output ?? []).flatMap((item) => (item.type === "message" ? item.content : []));
  return parts.map((part) => (part.type === "output_text" ? part.text : part.refusal)).join("");
}

/** Nothing is held any more, what was charged is this, and the ledger is sound. */
export async function expectLedger(stage: LlmStage, settled: bigint | "something"): Promise<void> {
  const money = await stage.money();
  if (settled === "something") expect(money.settled).toBeGreaterThan(0n);
  else expect(money.settled).toBe(settled);
  expect(money.held).toBe(0n);
  const { sum, problem } = stage.store.report();
  expect([sum, problem]).toEqual([0n, undefined]);
}

/** Neither the provider's key nor its address is in what clients were told; the key is not in the log either. */
export function expectNoSecret(stage: LlmStage, ...told: readonly Told[]): void {
  const { port } = new URL(stage.provider.url);
  const readable = told.map(({ text }) => text).join("\n");
  for (const secret of [SECRET, stage.provider.url, `127.0.0.1:${port}`, `localhost:${port}`]) {
    expect(readable).not.toContain(secret);
  }
  expect(stage.logged.join("\n")).not.toContain(SECRET);
}
