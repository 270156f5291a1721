/** What goes wrong after the fields are right: nothing leaks, the step stays, the next request works. */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/engine/fault.ts";
import { runUntilCancelled } from "../../fake-engine.ts";
import { imagePart, MODEL, observation, stage, textPart, withContent } from "../stage.ts";
import { expectClean, failure, session, settle } from "./outcome.ts";

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

test("no frame slot left: 503 engine_unavailable with Retry-After, and the frames put so far are dropped", async () => {
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

test("a failed run is 500 model_failure, aborted, and the step stays", async () => {
  const at = await stage();
  await at.chat(session);
  const { run } = at.engine.script;
  at.engine.script.run = async () => new Fault("model_failed", "a row is not finite");
  const response = await at.chat(session);
  expect(await failure(response)).toEqual({ status: 500, code: "model_failure", param: undefined });
  at.engine.script.run = run;
  await expectClean(at, 1);
  expect([at.engine.commits, at.engine.aborts]).toEqual([2, 1]);
});

for (const wrong of [{ rows: 29 }, { columns: 7 }]) {
  test(`a result with other ${Object.keys(wrong)[0]} than the model's is 500 model_failure, aborted, and the step stays`, async () => {
    const at = await stage();
    await at.chat(session);
    const { run } = at.engine.script;
    at.engine.script.run = async (observed) => ({ ...at.engine.chunk(observed), ...wrong });
    const { error } = (await (await at.chat(session)).json()) as { error: { code: string; message: string } };
    expect([error.code, error.message.split(", ").at(-1)]).toEqual(["model_failure", "repeat the observation"]);
    at.engine.script.run = run;
    await expectClean(at, 1);
    expect([at.engine.commits, at.engine.aborts]).toEqual([2, 1]);
  });
}

test("passing the deadline cancels the run itself: 503 engine_unavailable with Retry-After", async () => {
  const at = await stage();
  const { run } = at.engine.script;
  at.engine.script.run = runUntilCancelled;
  const pending = at.chat(session);
  await settle();
  expect(await failure(await at.chat(session))).toMatchObject({ status: 409, code: "session_busy" });
  at.clock.advance(9_999);
  await settle();
  expect(at.engine.cancels).toBe(0);
  at.clock.advance(1);
  const response = await pending;
  expect(response.headers.get("retry-after")).toBe("1");
  expect(await failure(response)).toMatchObject({ status: 503, code: "engine_unavailable" });
  expect(at.engine.cancels).toBe(1);
  at.engine.script.run = run;
  await expectClean(at, 0);
});

test("a fault of our own while frames are decoded is that request's 500 and nobody else's", async () => {
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
  Object.assign(at.engine.script, { decode, measure });
  await expectClean(at, 0);
});

test("passing the deadline while frames are decoded cancels their run", async () => {
  const at = await stage();
  const { decode } = at.engine.script;
  at.engine.script.decode = () => new Promise(() => {});
  const pending = at.chat(session);
  await settle();
  expect([at.engine.runsHeld, at.engine.observations.length]).toEqual([1, 0]);
  at.clock.advance(10_000);
  expect(await failure(await pending)).toMatchObject({ status: 503, code: "engine_unavailable" });
  expect(at.engine.cancels).toBe(1);
  at.engine.script.decode = decode;
  await expectClean(at, 0);
});

test("a client that leaves before the model has started cancels: free, step unmoved", async () => {
  const at = await stage();
  await at.chat(session);
  const { decode } = at.engine.script;
  at.engine.script.decode = () => new Promise(() => {});
  const client = new AbortController();
  const pending = at.chat(session, { signal: client.signal });
  await settle();
  client.abort();
  await pending;
  expect([at.engine.observations.length, at.engine.cancels]).toEqual([1, 1]);
  at.engine.script.decode = decode;
  await expectClean(at, 1);
});

test("a client that leaves after the model has started changes nothing: the chunk is finished and committed", async () => {
  const at = await stage();
  const { run } = at.engine.script;
  const model = Promise.withResolvers<void>();
  at.engine.script.run = async (observed) => {
    await model.promise;
    return at.engine.chunk(observed);
  };
  const client = new AbortController();
  const pending = at.chat(session, { signal: client.signal });
  await settle();
  expect(at.engine.observations.length).toBe(1);
  client.abort();
  model.resolve();
  await pending;
  expect([at.engine.commits, at.engine.cancels]).toEqual([1, 0]);
  at.engine.script.run = run;
  await expectClean(at, 1);
});

test("the instruction, busy and step rules answer over HTTP and run nothing", async () => {
  const at = await stage();
  await at.chat(session);
  const other = JSON.parse(JSON.stringify(session).replace("fold the towel", "fold the towel "));
  expect([
    await failure(await at.chat(other)),
    await failure(await at.chat({ ...session, expected_step: 0 })),
    await failure(await at.chat({ ...session, expected_step: 2 })),
  ]).toEqual([
    { status: 400, code: "instruction_changed", param: undefined },
    { status: 409, code: "session_step_conflict", param: "expected_step" },
    { status: 409, code: "session_step_conflict", param: "expected_step" },
  ]);
  expect(at.engine.cameras.length).toBe(3);
  at.clock.advance(60_000);
  expect(await failure(await at.chat(session))).toMatchObject({ status: 410, code: "session_expired" });
});

test("a full session table is 429 no_replica_free with Retry-After", async () => {
  const at = await stage({ sessionsMax: 1 });
  await at.chat(session);
  at.clock.advance(20_000);
  const response = await at.chat(observation({ session_id: "t" }));
  const body = await response.clone().json();
  expect([response.headers.get("retry-after"), body]).toMatchObject(["40", { error: { type: "rate_limit_error" } }]);
  expect(await failure(response)).toMatchObject({ status: 429, code: "no_replica_free" });
  await expectClean(at, 1);
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
  at.engine.script.observe = () => undefined;
  await expectClean(at, 0);
});

test("while it shuts down the service takes nothing new and answers what runs", async () => {
  const at = await stage();
  const model = Promise.withResolvers<void>();
  at.engine.script.run = async (observed) => {
    await model.promise;
    return at.engine.chunk(observed);
  };
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
  model.resolve();
  expect((await running).status).toBe(200);
  await drain;
});

test("whoever still waits when the service ends is answered: 503 engine_unavailable, and nothing is kept", async () => {
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
  expect([robot.sessions.size, http.ingress.bytes, at.engine.cameras.length]).toEqual([0, 0, 0]);
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

test("readyz is 503 while the service shuts down", async () => {
  const at = await stage();
  await at.service.core.lifecycle.drain();
  const response = await at.send("/readyz");
  expect([response.status, response.headers.get("retry-after"), await response.json()]).toMatchObject([
    503,
    "1",
    { error: { code: "engine_unavailable" }, missing: ["the service is shutting down"] },
  ]);
  expect((await at.send("/healthz")).status).toBe(200);
});

test("readyz answers within a second although the store says nothing", async () => {
  const at = await stage();
  at.store.ping = () => new Promise(() => {});
  const pending = at.send("/readyz");
  await settle();
  at.clock.advance(1_000);
  const response = await pending;
  expect([response.status, await response.json()]).toMatchObject([503, { missing: ["the store does not answer"] }]);
  expect(at.logLines.join()).toContain("within 1000 ms");
  expect(at.clock.armed).toBe(0);
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

test("healthz answers always; readyz says what is missing", async () => {
  const at = await stage();
  const ready = async () => {
    const response = await at.send("/readyz");
    return { status: response.status, missing: ((await response.json()) as { missing?: string[] }).missing };
  };
  expect((await at.send("/healthz")).status).toBe(200);
  expect(await ready()).toEqual({ status: 200, missing: undefined });
  const served = at.service.robot.catalog.models.get(MODEL);
  if (served) at.service.robot.catalog.models.set(MODEL, { ...served, model: undefined });
  at.store.down = true;
  expect(await ready()).toEqual({
    status: 503,
    missing: [`model ${MODEL} is loading`, "the store does not answer"],
  });
  expect(at.logLines.join()).toContain("switched off by the test");
  expect((await at.send("/healthz")).status).toBe(200);
});
