/** What a provider of language models sends: streams of events in both protocols. */
import { resolve } from "node:path";
import { Draft } from "../../../src/llm/output/draft.ts";
import { ChatDialect } from "../../../src/llm/provider/chat.ts";
import { Fault } from "../../../src/llm/provider/fault.ts";
import { Reader } from "../../../src/llm/provider/reader.ts";
import { ResponsesDialect } from "../../../src/llm/provider/responses.ts";
import { must, type Target } from "../target.ts";

const SRC = resolve(import.meta.dir, "../../../src");

/** How a stream ends, whose bytes come in pieces of `size`. */
function read(protocol: "chat" | "responses", bytes: Buffer, size: number): string {
  let ids = 0;
  const draft = new Draft({
    makeId: (prefix) => {
      ids += 1;
      return `${prefix}${ids}`;
    },
    emit: undefined,
  });
  const Dialect = protocol === "chat" ? ChatDialect : ResponsesDialect;
  const dialect = new Dialect(draft, 100);
  const reader = new Reader(dialect, draft, () => undefined);
  reader.begin("text/event-stream");
  let fault: Fault | undefined;
  for (let at = 0; at < bytes.length && !fault; at += size) fault = reader.bytes(bytes.subarray(at, at + size));
  const ending = fault ?? reader.ending();
  if (ending instanceof Fault) return `a fault: ${ending.kind}`;
  const { usage } = ending;
  if (usage)
    for (const [name, count] of Object.entries(usage))
      must(Number.isSafeInteger(count) && count >= 0, `${name} is a count`);
  return JSON.stringify([draft.output, ending]);
}

const CHAT = [
  'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}',
  'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}',
  'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}',
  "data: [DONE]\n\n",
].join("\n\n");
const RESPONSES = [
  'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}',
  'data: {"type":"response.output_text.delta","output_index":0,"item_id":"m","content_index":0,"delta":"hi"}',
  'data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"m","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
].join("\n\n");

export const events: Target = {
  name: "provider-events",
  guides: ["reader", "chat", "responses"].map((file) => `${SRC}/llm/provider/${file}.ts`),
  seeds: [CHAT, RESPONSES],
  words: ["data: ", "\n\n", "\r\n\r\n", ": comment\n", "event: x\n", "null", "{}", "[]", '"delta":', '"item":'],
  run(input) {
    const bytes = Buffer.from(input);
    const told: string[] = [];
    for (const protocol of ["chat", "responses"] as const) {
      const whole = read(protocol, bytes, Math.max(1, bytes.length));
      for (const size of [1, 7])
        must(read(protocol, bytes, size) === whole, `${protocol}: in pieces of ${size} it means the same`);
      const types = [...whole.matchAll(/"(?:type|status)":"(\w+)"/g)].map(([, type]) => type);
      told.push(whole.startsWith("[") ? types.slice(0, 6).join(" ") : whole);
    }
    return told.join();
  },
};
