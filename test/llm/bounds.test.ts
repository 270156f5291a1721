/** What a provider or a client can send without end: where it ends. */
import { describe, expect, test } from "bun:test";
import { readRequest } from "../../src/llm/checks.ts";
import { Draft } from "../../src/llm/output/draft.ts";
import { ChatDialect } from "../../src/llm/provider/chat.ts";
import type { Fault } from "../../src/llm/provider/fault.ts";
import { type Dialect, Reader } from "../../src/llm/provider/reader.ts";
import { ResponsesDialect } from "../../src/llm/provider/responses.ts";
import { Failure } from "../../src/std/failure.ts";
import { ask, PROTOCOLS } from "./asking.ts";
import { sse } from "./sse-text.ts";
import { LIVE, LlmStage } from "./stage.ts";

const responses = (draft: Draft) => new ResponsesDialect(draft, 100);
const chat = (draft: Draft) => new ChatDialect(draft);

interface Fed {
  readonly fault: Fault | undefined;
  readonly draft: Draft;
  /** Events that were told to a client. */
  readonly told: number;
}

function feed(dialectOf: (draft: Draft) => Dialect, count: number, event: (index: number) => object): Fed {
  let told = 0;
  let ids = 0;
  const emit = () => {
    told += 1;
  };
  const makeId = (prefix: string) => {
    ids += 1;
    return `${prefix}${ids}`;
  };
  const draft = new Draft({ makeId, emit });
  const reader = new Reader(dialectOf(draft), draft, () => undefined);
  reader.begin("text/event-stream");
  let fault: Fault | undefined;
  for (let index = 0; index < count && !fault; index += 1) fault = reader.bytes(Buffer.from(sse([event(index)])));
  return { fault, draft, told };
}

const added = (output_index: number, item: object) => ({ type: "response.output_item.added", output_index, item });
const call = (index: number, name: string, id = `c${index}`) => ({ index, id, function: { name, arguments: "" } });
const made = (...tool_calls: object[]) => ({ choices: [{ delta: { tool_calls }, finish_reason: null }] });
const part = (content_index: number) => ({
  ...{ type: "response.output_text.delta", output_index: 0, item_id: "m", content_index, delta: "x" },
});
const thought = (index: number) => ({ type: "reasoning", id: `r${index}`, encrypted_content: "e".repeat(10_000) });
const ENDLESS: Readonly<Record<string, readonly [(draft: Draft) => Dialect, (index: number) => object]>> = {
  "empty items": [responses, (index) => added(index, { type: "message", id: `m${index}` })],
  "calls without arguments": [chat, (index) => made(call(index, "add"))],
  "long names": [chat, (index) => made(call(index, "n".repeat(10_000)))],
  "long ids of calls": [chat, (index) => made(call(index, "add", `${index}${"i".repeat(10_000)}`))],
  "long ids of items": [responses, (index) => added(index, { type: "message", id: `${index}${"i".repeat(10_000)}` })],
  "parts of one character": [responses, part],
  "encrypted thoughts": [
    responses,
    (output_index) => ({ type: "response.output_item.done", output_index, item: thought(output_index) }),
  ],
};

describe("a provider that sends without end", () => {
  test.each(Object.entries(ENDLESS))("%s sends no answer", (_, [dialect, event]) => {
    const { fault } = feed(dialect, 20_000, event);
    expect([fault?.kind, fault?.detail]).toEqual(["invalid", "the output is too long"]);
  });

  test("all of it in one event has it read only up to the bound", () => {
    const many = Array.from({ length: 100_000 }, (_, index) => index);
    const one = feed(chat, 1, () => made(...many.map((index) => call(index, "add"))));
    const message = { type: "message", content: many.map(() => ({ type: "output_text", text: "" })) };
    const other = feed(responses, 1, () => ({
      type: "response.completed",
      response: { status: "completed", output: many.map(() => ({ type: "message" })) },
    }));
    const third = feed(responses, 1, () => ({ type: "response.output_item.done", output_index: 0, item: message }));
    for (const { fault, told } of [one, other, third]) {
      expect(fault?.detail).toBe("the output is too long");
      expect(told).toBeLessThan(100_000);
    }
  });
});

test("encrypted thoughts that are told twice count once, and names are no text of the answer", () => {
  const { fault, draft } = feed(responses, 500, () => ({
    ...{ type: "response.output_item.done", output_index: 0, item: thought(0) },
  }));
  expect([fault, draft.length]).toEqual([undefined, 0]);
  const { draft: calls } = feed(chat, 3, (index) => made(call(index, "add")));
  // Two of the three calls are over, each with the arguments {}.
  expect(calls.length).toBe(4);
});

describe("what is no text where one belongs", () => {
  test("as the type of an item is told without it", () => {
    for (const type of [{ toString: 1 }, undefined, 5, "t".repeat(1000)]) {
      const { fault } = feed(responses, 1, () => added(0, { type, id: "x" }));
      expect(fault?.kind).toBe("invalid");
      expect(fault?.detail.length).toBeLessThan(100);
    }
  });

  test("as the finish_reason, however deep, is one that nobody knows", () => {
    const draft = new Draft({ makeId: (prefix) => prefix, emit: undefined });
    const dialect = chat(draft);
    const deep = JSON.parse(`${"[".repeat(300_000)}${"]".repeat(300_000)}`) as unknown;
    expect(dialect.event({ choices: [{ delta: {}, finish_reason: deep }] })).toBeUndefined();
    expect(dialect.ending()).toEqual({ incomplete: undefined, usage: undefined });
  });
});

describe("a request", () => {
  test("that has to call a function has tools", async () => {
    await using stage = await LlmStage.start();
    for (const tool_choice of ["required", { type: "function", name: "add" }]) {
      for (const tools of [undefined, null, []]) {
        const told = await ask(stage, "live", { tools, tool_choice });
        expect([told.status, told.param]).toEqual([422, "tool_choice"]);
      }
    }
    expect(stage.provider.exchanges).toBeEmpty();
    for (const tool_choice of ["auto", "none", null])
      expect((await ask(stage, "live", { tool_choice })).status).toBe(200);
  });

  test.each(PROTOCOLS)("%s: of instructions alone has an empty turn of the user", async (protocol) => {
    await using stage = await LlmStage.start({ protocol });
    for (const input of [undefined, null, [], ""]) {
      const told = await ask(stage, "live", { input, instructions: "Say hello." });
      expect(told.status).toBe(200);
      expect(stage.provider.exchanges.at(-1)?.body).toMatchObject(
        protocol === "chat"
          ? {
              messages: [
                { role: "system", content: "Say hello." },
                { role: "user", content: "" },
              ],
            }
          : { input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "" }] }] },
      );
    }
    for (const input of [undefined, null, []]) {
      const told = await ask(stage, "live", { input });
      expect([told.status, told.param]).toEqual([422, "input"]);
    }
  });

  test("whose unknown field has a long name reads 128 characters of it", () => {
    const name = "n".repeat(2 ** 20);
    const top = readRequest({ model: LIVE, input: "Hi", [name]: 1 }, new Map());
    const inside = readRequest({ model: LIVE, input: [{ role: "user", content: "Hi", [name]: 1 }] }, new Map());
    for (const [failure, at] of [
      [top, ""],
      [inside, "input[0]."],
    ] as const) {
      if (!(failure instanceof Failure)) throw new Error("it is refused");
      const shown = `${at}${"n".repeat(128)}`;
      expect([failure.param, failure.message]).toEqual([shown, `${shown}: this field is not supported; leave it out`]);
    }
  });
});
