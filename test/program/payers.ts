/** Clients that send observations one after another, each with a new observation_id, and write down every answer. */
import sharp from "sharp";
import { RandomStream } from "../../src/std/random.ts";
import { requestOf } from "./program.ts";

/** The address for requests, and the account that pays for them. */
export interface Target {
  readonly url: string;
  readonly key: string;
}

/** What a client got for one request. */
export interface Answer {
  /** 0: the connection broke. */
  readonly status: number;
  readonly text: string;
  readonly code: string | undefined;
  readonly generationId: string | null;
  readonly replayed: boolean;
  readonly retryAfter: string | null;
  readonly shouldRetry: string | null;
  readonly step: string | null;
}

/** One line of the log. */
export interface Sent {
  readonly observationId: string;
  /** Empty: the request named no session. */
  readonly sessionId: string;
  readonly body: string;
  readonly sentMs: number;
  readonly endedMs: number;
  readonly answer: Answer;
}

const BROKEN = { status: 0, text: "", code: undefined, generationId: null, replayed: false } as const;

export async function post({ url, key }: Target, body: string, signal?: AbortSignal): Promise<Answer> {
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body,
      ...(signal ? { signal } : {}),
    });
    const text = await response.text();
    const { headers, status } = response;
    return {
      status,
      text,
      code: status === 200 ? undefined : codeOf(text),
      generationId: headers.get("x-generation-id"),
      replayed: headers.get("idempotent-replayed") === "true",
      retryAfter: headers.get("retry-after"),
      shouldRetry: headers.get("x-should-retry"),
      step: headers.get("x-session-step"),
    };
  } catch {
    return { ...BROKEN, retryAfter: null, shouldRetry: null, step: null };
  }
}

function codeOf(text: string): string {
  return (JSON.parse(text) as { error: { code: string } }).error.code;
}

/** Three cameras' frames, so small that a thousand bodies are of no weight. */
export async function smallFrames(): Promise<Uint8Array[]> {
  const hues = [0, 1, 2].map((hue) => ({ r: 80 * hue, g: 120, b: 200 - 60 * hue }));
  const pictures = hues.map((background) => sharp({ create: { width: 48, height: 32, channels: 3, background } }));
  return await Promise.all(pictures.map((picture) => picture.jpeg({ quality: 60 }).toBuffer()));
}

/** The longest pause of a client that was refused, milliseconds. */
const PAUSE_MS = 400;

/**
 * Half of the clients run an episode, half name no session. A client ends when its connection breaks. One that was refused
 * pauses for a random time: otherwise all of them would wait for the same thing at the same moment ever after.
 */
export class Payers {
  readonly log: Sent[] = [];
  private readonly running: Promise<unknown>;
  private over = false;

  constructor(
    private readonly target: Target,
    private readonly frames: readonly Uint8Array[],
    clients: number,
  ) {
    this.running = Promise.all(Array.from({ length: clients }, (_, client) => this.client(client)));
  }

  /** Answers with 200 so far to what was sent after `sinceMs`. */
  answeredSince(sinceMs: number): number {
    return this.log.filter(({ answer, sentMs }) => answer.status === 200 && sentMs > sinceMs).length;
  }

  /** Lets every client have its last answer. */
  async stop(): Promise<readonly Sent[]> {
    this.over = true;
    await this.running;
    return this.log;
  }

  private async client(client: number): Promise<void> {
    const named = client % 2 === 0;
    const random = new RandomStream(`client ${client}`);
    for (let number = 0, session = 0, step = 0; !this.over; number += 1) {
      const sessionId = named ? `s-${client}-${session}` : "";
      const observationId = `o-${client}-${number}`;
      const within = named ? { session_id: sessionId, expected_step: step } : {};
      const body = requestOf(this.frames, { observation_id: observationId, ...within });
      const sentMs = performance.now();
      const answer = await post(this.target, body);
      this.log.push({ observationId, sessionId, body, sentMs, endedMs: performance.now(), answer });
      if (answer.status === 0) return;
      if (answer.status === 200) step += 1;
      else if (answer.code === "observation_outcome_unknown") {
        // It is unknown whether the step was taken, so the session is over.
        session += 1;
        step = 0;
      }
      if (answer.status !== 200) await Bun.sleep(random.word() % PAUSE_MS);
    }
  }
}
