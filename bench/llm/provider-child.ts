/**
 * A language model's provider that costs next to nothing: the chat protocol, answers of as many tokens as the request allows. A token
 * of a stream is the time at which it was sent, so that a reader knows how long it was under way. `user` sets the pause between
 * two tokens: `gap=5` is 5 ms; without it there is one turn of the event loop. It answers every message with its address.
 */
import { answerMessages } from "../child.ts";

interface Asked {
  readonly stream?: boolean;
  readonly max_tokens?: number;
  readonly user?: string;
}

const encoder = new TextEncoder();

function chunk(delta: string, finish: string): Uint8Array {
  return encoder.encode(
    `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`,
  );
}

/** Streams so far: each has its pauses at another time, as streams that know nothing of each other have. */
let streams = 0;
const PHASES = 97;

function stream({ max_tokens: tokens = 1, user = "" }: Asked): ReadableStream<Uint8Array> {
  const gap = /gap=(\d+)/.exec(user)?.[1];
  let open = true;
  streams += 1;
  const phase = (streams % PHASES) / PHASES;
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      for (let sent = 0; sent < tokens && open; sent += 1) {
        const now = performance.timeOrigin + performance.now();
        controller.enqueue(chunk(`{"content":"${now.toFixed(3)} "}`, "null"));
        if (gap === undefined) await new Promise((resolve) => setImmediate(resolve));
        else await Bun.sleep(Number(gap) * (sent === 0 ? phase : 1));
      }
      if (!open) return;
      controller.enqueue(chunk("{}", '"stop"'));
      const usage = `{"prompt_tokens":10,"completion_tokens":${tokens},"total_tokens":${tokens + 10}}`;
      controller.enqueue(encoder.encode(`data: {"id":"c","choices":[],"usage":${usage}}\n\ndata: [DONE]\n\n`));
      controller.close();
    },
    cancel() {
      open = false;
    },
  });
}

const PLAIN = JSON.stringify({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello from the provider." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
});

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const asked = (await request.json()) as Asked;
    if (!asked.stream) return new Response(PLAIN, { headers: { "content-type": "application/json" } });
    return new Response(stream(asked), { headers: { "content-type": "text/event-stream" } });
  },
});

answerMessages(() => `${server.url.origin}/v1`);
