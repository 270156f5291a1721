/** Clients of the language models, live and in the background, and what they got. Each request has a new Idempotency-Key. */
import type { Target } from "./payers.ts";

export type Kind = "live" | "stream" | "job";

const MODELS: Readonly<Record<Kind, string>> = {
  live: "llm-a-5.3:superfast",
  stream: "llm-a-5.3:superfast",
  job: "llm-a-5.3:async",
};

/** What came of one request. */
export interface Answer {
  /** 0: the connection broke before the answer was whole. */
  readonly status: number;
  readonly code: string | undefined;
  readonly replayed: boolean;
  /** The text up to where it broke off. */
  readonly text: string;
  /** The response object, as it was written; undefined: none came, or only its beginning. */
  readonly object: string | undefined;
  /** The id of the response, if the client got it. */
  readonly id: string | undefined;
}

/** One line of the log. */
export interface Sent {
  readonly kind: Kind;
  readonly key: string;
  readonly answer: Answer;
  /** The end of a job that polling has shown; undefined: no end. */
  readonly polled: string | undefined;
}

export async function ask(target: Target, kind: Kind, key: string): Promise<Answer> {
  const body = JSON.stringify({ model: MODELS[kind], input: `key=${key};`, stream: kind === "stream" });
  return await fetched(kind, `${target.url}/v1/responses`, {
    method: "POST",
    headers: { ...headersOf(target), "content-type": "application/json", "idempotency-key": key },
    body,
  });
}

export async function get(target: Target, id: string): Promise<Answer> {
  return await fetched("live", `${target.url}/v1/responses/${id}`, { headers: headersOf(target) });
}

/** Until the response has ended; undefined: the connection broke. */
export async function polled(target: Target, id: string): Promise<string | undefined> {
  for (;;) {
    const { status, object } = await get(target, id);
    if (status === 0) return undefined;
    if (status !== 200 || object === undefined) throw new Error(`GET ${id} of an accepted job is ${status}`);
    if (!/^(queued|in_progress)$/.test(statusOf(object))) return object;
    await Bun.sleep(15);
  }
}

export function statusOf(object: string): string {
  return (JSON.parse(object) as { status: string }).status;
}

function headersOf({ key }: Target): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

async function fetched(kind: Kind, url: string, init: RequestInit): Promise<Answer> {
  let text = "";
  try {
    const response = await fetch(url, init);
    const { status, headers, body } = response;
    const decoder = new TextDecoder();
    for await (const piece of body ?? []) text += decoder.decode(piece, { stream: true });
    const replayed = headers.get("idempotent-replayed") === "true";
    const whole = kind === "stream" && status === 200 ? endOf(text) : text;
    if (whole === undefined) return { ...BROKEN, text, id: idIn(text) };
    const code = status === 200 ? undefined : (JSON.parse(text) as { error: { code: string } }).error.code;
    return { status, code, replayed, text, object: status === 200 ? whole : undefined, id: idIn(text) };
  } catch {
    return { ...BROKEN, text, id: idIn(text) };
  }
}

const BROKEN = { status: 0, code: undefined, replayed: false, object: undefined } as const;

function idIn(text: string): string | undefined {
  return /"id":"(resp_\w+)"/.exec(text)?.[1];
}

/** The response of a stream's last event, as it was written; undefined: the stream was cut off. */
function endOf(text: string): string | undefined {
  const events = text.split("\n\n");
  if (events.at(-2) !== "data: [DONE]") return undefined;
  const [, type, data] = /^event: (\S+)\ndata: (.*)$/.exec(events.at(-3) ?? "") ?? [];
  if (!/^response\.(completed|failed|incomplete)$/.test(type ?? "")) throw new Error(`a stream ended with ${type}`);
  return JSON.stringify((JSON.parse(data ?? "{}") as { response: object }).response);
}

const KINDS: readonly Kind[] = ["live", "stream", "job"];

/** Each sends one request after another, a client of jobs each when it has its end, until the connection breaks. */
export class LlmClients {
  readonly log: Sent[] = [];
  private readonly running: Promise<unknown>;

  constructor(
    private readonly target: Target,
    private readonly name: string,
    clients: number,
  ) {
    this.running = Promise.all(Array.from({ length: clients }, (_, client) => this.client(client)));
  }

  /** Requests that have their answer; jobs: that have ended. */
  get answered(): number {
    return this.log.filter(({ kind, answer, polled: end }) => (kind === "job" ? end : answer.object) !== undefined)
      .length;
  }

  /** After the service has gone. */
  async over(): Promise<readonly Sent[]> {
    await this.running;
    return this.log;
  }

  private async client(client: number): Promise<void> {
    const kind = KINDS[client % KINDS.length] ?? "live";
    for (let number = 0; ; number += 1) {
      const key = `${this.name}-${kind}-${client}-${number}`;
      const answer = await ask(this.target, kind, key);
      if (answer.status !== 0 && answer.status !== 200) throw new Error(`${key} was answered ${answer.code}`);
      const poll = kind === "job" && answer.id !== undefined && answer.status === 200;
      const end = poll ? await polled(this.target, answer.id ?? "") : undefined;
      this.log.push({ kind, key, answer, polled: end });
      if (answer.status === 0 || (poll && end === undefined)) return;
    }
  }
}
