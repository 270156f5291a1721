/** What goes wrong after the fields are right: nothing leaks, the step stays, the next request works. */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/engine/fault.ts";
import { runUntilCancelled } from "../../fake-engine.ts";
import { imagePart, observation, stage, textPart, withContent } from "../stage.ts";
import { expectClean, failure, holdModel, session, settle } from "./outcome.ts";

test("an undecodable JPEG is invalid_image with the image's field; the other frames are dropped", async () => {
  const at = await stage();
  await at.chat(session);
  let decodes = 0;
  const decode = at.engine.script.decode;
  at.engine.script.decode = async () => {
    decodes += 1;
    return decodes === 2 ? new Fault("bad_image", "truncated file") : undefined;
  };
  expect(await failure(await at.chat(session))).toEqual({
    status: 400,
    code: "invalid_image",
    param: "messages[0].content[2].image_url.url",
  });
  expect(at.engine.observations.length).toBe(1);
  at.engine.script.decode = decode;
  await expectClean(at, 1);
});

test("a bad image of a stream is told before the stream begins: 400, and no event", async () => {
  const at = await stage();
  at.engine.script.decode = async () => new Fault("bad_image", "truncated file");
  const response = await at.chat({ ...session, stream: true });
  expect(response.headers.get("content-type")).toStartWith("application/json");
  expect(await failure(response)).toMatchObject({ status: 400, code: "invalid_image" });
  expect([at.engine.runsHeld, at.engine.cancels]).toEqual([0, 0]);
});

test("no frame permit left: 503 engine_unavailable with Retry-After, and the frames put so far are dropped", async () => {
  const at = await stage();
  let puts = 0;
  at.engine.script.framePut = () => {
    puts += 1;
    return puts === 3 ? new Fault("busy", "all frame slots are taken") : undefined;
  };
  const response = await at.chat(session);
  expect(response.headers.get("retry-after")).toBe("1");
  expect(await failure(response)).toMatchObject({ status: 503, code: "engine_unavailable" });
  await expectClean(at, 0);
});

for (const wrong of [{ rows: 29 }, { columns: 7 }]) {
  test(`a result with other ${Object.keys(wrong)[0]} than the model's is 500 model_failure, aborted, and the step stays`, async () => {
    const at = await stage();
    await at.chat(session);
    at.engine.script.run = async (observed) => ({ ...at.engine.chunk(observed), ...wrong });
    const { error } = (await (await at.chat(session)).json()) as { error: { code: string; message: string } };
    expect([error.code, error.message.split(", ").at(-1)]).toEqual(["model_failure", "repeat the observation"]);
    await expectClean(at, 1);
    expect([at.engine.commits, at.engine.aborts]).toEqual([2, 1]);
  });
}

test("passing the deadline cancels the inference itself: 503 engine_unavailable with Retry-After", async () => {
  const at = await stage();
  at.engine.script.run = runUntilCancelled;
  const pending = at.chat(session);
  await settle();
  expect(await failure(await at.chat(session))).toMatchObject({ status: 409, code: "session_busy" });
  at.clock.advance(9_999);
  await settle();
  expect(at.engine.cancels).toBe(0);
  at.clock.advance(1);
  const response = await pending;
  expect(await response.clone().text()).toContain("not ready within 10 s and was stopped; retry with backoff");
  expect(response.headers.get("retry-after")).toBe("1");
  expect(await failure(response)).toMatchObject({ status: 503, code: "engine_unavailable" });
  expect(at.engine.cancels).toBe(1);
  await expectClean(at, 0);
});

test("a fault of our own while frames are decoded is that request's 500 and no other's", async () => {
  const at = await stage();
  const { decode, measure } = at.engine.script;
  const gate = Promise.withResolvers<void>();
  at.engine.script.decode = async (jpeg) => {
    await gate.promise;
    return await decode(jpeg);
  };
  // The first look is at the instruction's length, the second at the price.
  let looks = 0;
  at.engine.script.measure = (instruction) => {
    looks += 1;
    if (looks === 2) throw new Error("assertion failed: for this test");
    return measure(instruction);
  };
  const pending = at.chat(session);
  // A rejection that nobody has taken by now ends the process.
  await settle();
  gate.resolve();
  expect((await pending).status).toBe(500);
  await expectClean(at, 0);
});

test("a fault of our own is 500 internal_error: the log has the stack, the client the request's id", async () => {
  const at = await stage();
  at.engine.script.observe = () => {
    throw new Error("secret /path/in/stack");
  };
  const response = await at.chat(session);
  const text = await response.clone().text();
  expect(await failure(response)).toMatchObject({ status: 500, code: "internal_error" });
  expect(text).not.toContain("secret");
  expect(text).toContain(response.headers.get("x-request-id") ?? "no id");
  expect(at.logLines.join()).toContain("secret");
  await expectClean(at, 0);
});

test("while it shuts down the service takes nothing new and answers what runs", async () => {
  const at = await stage();
  const release = holdModel(at);
  const running = at.chat(session);
  await settle();
  let drained = false;
  const drain = at.service.core.lifecycle.drain().then(() => {
    drained = true;
  });
  const refused = await at.chat(observation());
  expect(refused.headers.get("connection")).toBe("close");
  expect(await failure(refused)).toMatchObject({ status: 503, code: "engine_unavailable" });
  expect(drained).toBe(false);
  release();
  expect((await running).status).toBe(200);
  await drain;
});

test("a request that still waits when the service ends is answered: 503 engine_unavailable, and nothing is kept", async () => {
  const at = await stage();
  at.engine.script.run = runUntilCancelled;
  const running = at.chat(session);
  await settle();
  const drained = at.service.core.lifecycle.drain();
  at.service.core.lifecycle.cut();
  expect(await failure(await running)).toMatchObject({ status: 503, code: "engine_unavailable" });
  await drained;
  await settle();
  expect([at.engine.cancels, at.engine.runsHeld, at.engine.framesHeld, at.clock.armed]).toEqual([1, 0, 0, 0]);
});

test("a body that arrives after the signal to end opens no session", async () => {
  const at = await stage();
  const text = JSON.stringify(session);
  const rest = Promise.withResolvers<void>();
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(Buffer.from(text.slice(0, 100)));
      await rest.promise;
      controller.enqueue(Buffer.from(text.slice(100)));
      controller.close();
    },
  });
  const pending = at.chat("", { body });
  await settle();
  const drained = at.service.core.lifecycle.drain();
  rest.resolve();
  expect(await failure(await pending)).toMatchObject({ status: 503, code: "engine_unavailable" });
  await drained;
  const { robot, http } = at.service;
  expect([robot.sessions.size, http.ingress.bytes, at.engine.framesPut]).toEqual([0, 0, 0]);
});

test("a failure's detail is for the log, never for the client", async () => {
  const at = await stage();
  at.engine.script.observe = () => new Fault("model_failed", "the model failed", "secret /path");
  const response = await at.chat(session);
  const text = await response.text();
  expect([response.status, text.includes("the model failed"), text.includes("secret")]).toEqual([500, true, false]);
  const line = at.logLines.find((entry) => entry.includes("secret /path"));
  expect(line).toContain(response.headers.get("x-request-id") ?? "no id");
  at.store.down = true;
  expect(await (await at.chat(session)).text()).not.toContain("switched off");
  expect(at.logLines.join()).toContain("switched off by the test");
});

test("the engine, not the route, judges how long an instruction is, whatever its white space", async () => {
  const at = await stage();
  const text = `${"fold ".repeat(1_000)}${" \n".repeat(1_000_000)}it`;
  let measured = "";
  at.engine.script.measure = (instruction) => {
    measured = instruction;
    return 100;
  };
  const content = [textPart(text), imagePart(), imagePart(), imagePart()];
  expect((await at.chat(withContent(content))).status).toBe(200);
  expect(measured).toBe(text);
});
