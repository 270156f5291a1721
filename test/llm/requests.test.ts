/** Every field of a request: how it reaches the provider in either protocol, and what the response says of it. */
import { describe, expect, test } from "bun:test";
import { ask, PROTOCOLS } from "./asking.ts";
import { ORDERLY } from "./refused-fields.ts";
import { BARE, CONVERSATION, FIELDS, FORMAT, IN_CHAT, TOOL, user } from "./request-fields.ts";
import { JOB, LIVE, LlmStage } from "./stage.ts";

describe.each(PROTOCOLS)("%s: the provider gets", (protocol) => {
  test.each(Object.entries(FIELDS))("%s", async (_, [sent, chat = sent, responses = sent]) => {
    await using stage = await LlmStage.start({ protocol });
    for (const manner of ["live", "stream", "job"] as const) {
      const told = await ask(stage, manner, sent);
      expect([told.status, told.message]).toEqual([200, undefined]);
      expect(stage.provider.exchanges.at(-1)?.body).toMatchObject(protocol === "chat" ? chat : responses);
    }
  });

  test("nothing that the client has not said, besides the model's own name and the limits", async () => {
    await using stage = await LlmStage.start({ protocol, table: { model: "their-name" } });
    await ask(stage, "live", { input: "Hi", metadata: { a: "b" }, truncation: "disabled", previous_response_id: null });
    const limit = { model: "their-name", stream: true };
    expect(stage.provider.exchanges[0]?.body as object).toEqual(
      protocol === "chat"
        ? { ...limit, messages: user("Hi"), max_tokens: 8192, stream_options: { include_usage: true } }
        : {
            ...limit,
            input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }],
            max_output_tokens: 8192,
            store: false,
          },
    );
  });
});

const NAMES = { user: "jo", safety_identifier: "", prompt_cache_key: "chat 7" } as const;

/** What the provider gets of the names of a request, live and as a job. */
async function namesOf(stage: LlmStage): Promise<unknown[]> {
  for (const manner of ["live", "job"] as const)
    expect((await ask(stage, manner, NAMES)).response).toMatchObject(NAMES);
  return stage.provider.exchanges.map(({ body }) => Object.keys(NAMES).map((name) => body?.[name]));
}

test.each(PROTOCOLS)(
  "%s: user, safety_identifier and prompt_cache_key reach the provider as hashes that are the account's own",
  async (protocol) => {
    await using mine = await LlmStage.start({ protocol });
    await using later = await LlmStage.start({ protocol });
    await using theirs = await LlmStage.start({ protocol, accountId: "acct_2" });
    const [live, job] = (await namesOf(mine)) as string[][];
    for (const name of live ?? []) expect(name).toMatch(/^[0-9a-f]{64}$/);
    expect(job).toEqual(live);
    // After a restart, or on another node, it is the same.
    expect(await namesOf(later)).toEqual([live, live]);
    const [other] = (await namesOf(theirs)) as string[][];
    expect(new Set([...(live ?? []), ...(other ?? [])]).size).toBe(6);
  },
);

describe("a conversation", () => {
  test("chat: thoughts, words and calls of a turn are one message of the assistant", async () => {
    await using stage = await LlmStage.start();
    const told = await ask(stage, "live", { input: CONVERSATION, tools: [TOOL, BARE] });
    expect([told.status, told.message]).toEqual([200, undefined]);
    expect(stage.provider.exchanges[0]?.body?.messages as object[]).toEqual(IN_CHAT);
  });

  test.each(Object.entries(ORDERLY))("chat: %s: each call has its output behind its message", async (_, input) => {
    await using stage = await LlmStage.start();
    const told = await ask(stage, "live", { input });
    expect([told.status, told.message]).toEqual([200, undefined]);
    const messages = stage.provider.exchanges[0]?.body?.messages as { role: string; tool_calls?: { id: string }[] }[];
    for (const [index, { tool_calls = [] }] of messages.entries()) {
      const behind = messages.slice(index + 1, index + 1 + tool_calls.length) as { tool_call_id?: string }[];
      expect(behind.map(({ tool_call_id }) => tool_call_id).toSorted()).toEqual(
        tool_calls.map(({ id }) => id).toSorted(),
      );
    }
    expect(messages.filter(({ tool_calls }) => tool_calls)).toBeArrayOfSize(input.length === 4 ? 2 : 1);
  });

  test("Responses: items stay what they are", async () => {
    await using stage = await LlmStage.start({ protocol: "responses" });
    const told = await ask(stage, "live", { input: CONVERSATION, tools: [TOOL, BARE] });
    expect([told.status, told.message]).toEqual([200, undefined]);
    const input = stage.provider.exchanges[0]?.body?.input as Record<string, unknown>[];
    expect(input.map(({ type }) => type)).toEqual(CONVERSATION.map(({ type = "message" }) => type));
    expect(input[3]).toMatchObject({ content: [{ type: "reasoning_text", text: "Easy." }], summary: [] });
    expect(input[5] as object).toEqual({ type: "function_call", call_id: "c1", name: "add", arguments: '{"a":1}' });
    expect(input[8] as object).toEqual({ type: "function_call_output", call_id: "c2", output: "nothing" });
    expect(input[9]).toMatchObject({ content: [{ type: "refusal", refusal: "I will not say it." }] });
  });

  test("the limit of output tokens has the name that the table says", async () => {
    await using stage = await LlmStage.start({ table: { output_limit_field: "max_completion_tokens" } });
    await ask(stage, "live");
    expect(stage.provider.exchanges[0]?.body).toMatchObject({ max_completion_tokens: 8192 });
  });

  test("Responses: a summary of thoughts, and the label of a message, can be asked for and sent", async () => {
    await using stage = await LlmStage.start({ protocol: "responses" });
    const input = [
      { type: "reasoning", summary: [{ type: "summary_text", text: "Short." }] },
      { role: "assistant", phase: "commentary", content: "Wait." },
    ];
    await ask(stage, "live", { input, reasoning: { summary: "auto", effort: "xhigh" } });
    expect(stage.provider.exchanges[0]?.body).toMatchObject({
      reasoning: { summary: "auto", effort: "xhigh" },
      input: [{ summary: [{ type: "summary_text", text: "Short." }] }, { role: "assistant", phase: "commentary" }],
    });
  });
});

describe("the response object", () => {
  test("has every key of the public one, and says what was asked", async () => {
    await using stage = await LlmStage.start();
    const asked = {
      ...{ instructions: "Be brief.", max_output_tokens: 77, temperature: 0.5, top_p: 0.25, tools: [TOOL] },
      ...{ tool_choice: "required", parallel_tool_calls: false, text: { format: FORMAT, verbosity: "high" } },
      ...{
        reasoning: { effort: "low" },
        metadata: { one: "1" },
        user: "u",
        safety_identifier: "s",
        prompt_cache_key: "c",
      },
    };
    for (const manner of ["live", "stream", "job", "buffered"] as const) {
      const { response } = await ask(stage, manner, asked);
      const background = manner === "job" || manner === "buffered";
      expect(response).toMatchObject({
        ...asked,
        reasoning: { effort: "low", summary: null },
        ...{ object: "response", model: background ? JOB : LIVE, background, store: background, status: "completed" },
      });
    }
  });

  test("has the same keys in every state, null where there is nothing", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer" }, { kind: "answer", finish: "length" }, { kind: "refuse", status: 500 });
    const told = [await ask(stage, "live"), await ask(stage, "stream"), await ask(stage, "job")];
    const queued = (await (await stage.post({ model: JOB })).json()) as object;
    const all = [...told.map(({ response }) => response ?? {}), queued];
    const keys = new Set(all.map((one) => Object.keys(one).join(" ")));
    expect(keys.size).toBe(1);
    expect(all.flatMap((one) => Object.values(one)).filter((value) => value === undefined)).toEqual([]);
    expect([...keys][0]?.split(" ")).toEqual(expect.arrayContaining(REQUIRED) as string[]);
    expect(told[2]?.response).toMatchObject({ status: "failed", usage: null, completed_at: null });
  });
});

/** The keys that the Open Responses document requires, and our `output_text`. */
const REQUIRED =
  "id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key output_text".split(
    " ",
  );
