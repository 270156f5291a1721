/** Calls of a language model, to its provider itself or through a service, timed from outside. */
import type { Service } from "../../client/http.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { baseUrl, PLAIN_MODEL, STREAM_MODEL, type Stream, TOKEN } from "./provider.ts";

export const FORMS = ["plain", "stream"] as const;
export type Form = (typeof FORMS)[number];
export const PATHS = ["direct", "through"] as const;
export type Path = (typeof PATHS)[number];

export interface CallMs {
  /** Until the first token was read; of a plain answer until its end. */
  readonly first: number;
  readonly whole: number;
}

interface Target {
  readonly url: string;
  readonly init: RequestInit;
}

/** The same call on either path. */
export function targetOf(path: Path, form: Form, origin: string, service: Service, streamed: Stream): Target {
  const stream = form === "stream";
  const [url, key, body] =
    path === "direct"
      ? [`${baseUrl(origin, streamed)}/chat/completions`, "none", { ...CHAT, max_tokens: streamed.tokens, stream }]
      : [
          `${service.url}/v1/responses`,
          service.apiKey,
          {
            ...{ model: stream ? STREAM_MODEL : PLAIN_MODEL, input: "Hello.", stream },
            max_output_tokens: streamed.tokens,
          },
        ];
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return { url, init: { method: "POST", headers, body: JSON.stringify(body) } };
}

const CHAT = { model: "m", messages: [{ role: "user", content: "Hello." }] };

/** From handing the request to HTTP until its answer's first token and until its last byte. */
export async function timedCall({ url, init }: Target): Promise<CallMs | Problem> {
  const beganMs = systemClock.monotonicMs();
  try {
    const response = await fetch(url, init);
    if (!response.ok)
      return new Problem(`a call was answered ${response.status}: ${(await response.text()).slice(0, 200)}`);
    const decoder = new TextDecoder();
    let first = Number.NaN;
    for await (const piece of response.body ?? []) {
      // A token is short, and the provider sends each whole.
      if (Number.isNaN(first) && decoder.decode(piece, { stream: true }).includes(TOKEN)) {
        first = systemClock.monotonicMs() - beganMs;
      }
    }
    const whole = systemClock.monotonicMs() - beganMs;
    return Number.isNaN(first) ? new Problem("an answer had no token") : { first, whole };
  } catch (error) {
    return new Problem(`a call failed: ${(error as Error).message}`);
  }
}
