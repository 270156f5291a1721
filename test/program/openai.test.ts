/** The official client of the OpenAI API, stock: it gets a chunk both ways, and failures as its own errors. */
import { expect, test } from "bun:test";
import OpenAI from "openai";
import { Place } from "./program.ts";
import { footage, framesAt, observe, ROBOTS } from "./robot.ts";

type Request = Parameters<OpenAI["chat"]["completions"]["create"]>[0];

test("the openai client gets the same chunk plain and streamed, and meets errors as it expects them", async () => {
  await using place = await Place.make();
  const server = await place.serve([], { TENDON_FAULTS: "after_start:drill" });
  const client = new OpenAI({ baseURL: `${server.ready.url}/v1`, apiKey: server.ready.api_key, maxRetries: 0 });
  const { cameras } = await footage(2);
  const robot = ROBOTS[2];
  if (!robot) throw new Error("no robot");
  const body = (extra: object) => observe(robot, 0, framesAt(robot, 0, cameras), extra) as unknown as Request;

  const plain = await client.chat.completions.create({ ...body({ session_id: "a" }), stream: false });
  const content = JSON.parse(plain.choices[0]?.message.content ?? "null");
  expect([content.actions.length, plain.usage?.completion_tokens]).toEqual([30, 30]);

  const stream = await client.chat.completions.create({ ...body({ session_id: "b" }), stream: true });
  let text = "";
  let finish: unknown;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    finish = chunk.choices[0]?.finish_reason ?? finish;
  }
  expect([JSON.parse(text).actions, finish]).toEqual([content.actions, "stop"]);

  const described = await client.chat.completions.create({
    model: robot.model,
    messages: [{ role: "user", content: "what are you?" }],
  });
  expect(described.choices[0]?.message.content).toContain("Cameras, in this order: top, left, right.");

  // The client's promises begin their request when they are awaited: Bun's `rejects` does not do that.
  const refused = async () => await client.chat.completions.create({ ...body({ seed: -1 }), stream: false });
  await expect(refused()).rejects.toMatchObject({ status: 400, code: "invalid_parameter", param: "seed" });
  const failing = await client.chat.completions.create({ ...body({ session_id: "drill-1" }), stream: true });
  const reading = async () => {
    for await (const _ of failing);
  };
  await expect(reading()).rejects.toMatchObject({ code: "model_failure" });
  expect(await server.stop()).toBe(0);
});
