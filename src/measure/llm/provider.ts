/**
 * A provider of language models that costs next to nothing, for measurements: the chat protocol, every answer the same. The path of its
 * address says how many tokens a stream has and how long it waits between two.
 */
import { sleep, systemClock } from "../../std/clock.ts";

/** The ids under which a measured service offers it: one is asked for a stream, the other for an answer in one piece. */
export const STREAM_MODEL = "llm-b-v4-flash:superfast";
export const PLAIN_MODEL = "llm-a-5.3:superfast";
/** Each token of its streams. */
export const TOKEN = "word ";

export interface Stream {
  readonly tokens: number;
  readonly gapMs: number;
}

/** The base address of a provider at `origin` whose streams are so. */
export function baseUrl(origin: string, { tokens, gapMs }: Stream): string {
  return `${origin}/${tokens}/${gapMs}/v1`;
}

/** The tables of tendon.toml. Prices of zero: the ledger does all of its work, and credit does not run out. */
export function providerTables(origin: string, streamed: Stream): string {
  const one = (model: string, stream: boolean): string =>
    [
      `[llm."${model}"]`,
      `base_url = "${baseUrl(origin, streamed)}"`,
      'protocol = "chat"',
      'model = "m"',
      `stream = ${stream}`,
      'input_usd_per_mtok = "0"',
      'cached_input_usd_per_mtok = "0"',
      'output_usd_per_mtok = "0"',
      "",
    ].join("\n");
  return [one(STREAM_MODEL, true), one(PLAIN_MODEL, false)].join("\n");
}

/** Serves on a free port of this machine until `stop`. */
export function startProvider(): { readonly origin: string; stop(): Promise<void> } {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const [, tokens, gapMs] = new URL(request.url).pathname.split("/");
      const { stream } = (await request.json()) as { readonly stream?: boolean };
      if (stream !== true) return new Response(PLAIN, { headers: { "content-type": "application/json" } });
      const events = streamOf({ tokens: Number(tokens), gapMs: Number(gapMs) });
      return new Response(events, { headers: { "content-type": "text/event-stream" } });
    },
  });
  return { origin: server.url.origin, stop: () => server.stop(true) };
}

const PLAIN = JSON.stringify({
  ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
  choices: [{ index: 0, message: { role: "assistant", content: TOKEN }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
});

const encoder = new TextEncoder();

function streamOf({ tokens, gapMs }: Stream): ReadableStream<Uint8Array> {
  const usage = { prompt_tokens: 10, completion_tokens: tokens, total_tokens: tokens + 10 };
  let open = true;
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      for (let sent = 0; sent < tokens && open; sent += 1) {
        if (sent > 0) await sleep(systemClock, gapMs);
        if (open) controller.enqueue(encoder.encode(chunk({ content: TOKEN }, null)));
      }
      if (!open) return;
      const end = `data: ${JSON.stringify({ id: "c", choices: [], usage })}\n\ndata: [DONE]\n\n`;
      controller.enqueue(encoder.encode(chunk({}, "stop") + end));
      controller.close();
    },
    cancel() {
      open = false;
    },
  });
}

function chunk(delta: object, finish_reason: string | null): string {
  const head = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
  return `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
}
