import { expect, test } from "bun:test";
import { readBody } from "../../src/http/body.ts";
import { Ingress } from "../../src/http/deps.ts";
import { parseObject } from "../../src/http/json.ts";
import { ROBOT_ANSWERS } from "../../src/robot/errors.ts";
import { Failure } from "../../src/std/failure.ts";
import { observation, stage } from "../robot/stage.ts";
import { FakeClock } from "../std/fake-clock.ts";

const MiB = 1024 * 1024;

const ROBOT_WAY = { answers: ROBOT_ANSWERS, smaller: "send less" };

function post(body: string | ReadableStream, headers: Record<string, string> = {}): Request {
  return new Request("http://localhost/", { method: "POST", body, headers });
}

/** A body without Content-Length, in parts of `bytes`, that notes how often it was asked for more. */
function parts(count: number, bytes: number): { stream: ReadableStream; asked: () => number } {
  let asked = 0;
  const stream = new ReadableStream(
    {
      pull(controller) {
        asked += 1;
        if (asked > count) controller.close();
        else controller.enqueue(new Uint8Array(bytes).fill(0x20));
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, asked: () => asked };
}

test("a body over 8 MiB is refused from Content-Length before it is read", async () => {
  const { chat, key, service } = await stage();
  const { stream, asked } = parts(1, 10);
  const headers = { authorization: `Bearer ${key}`, "content-length": String(8 * MiB + 1) };
  const response = await chat("", { headers, body: stream });
  expect([response.status, await response.json()]).toMatchObject([413, { error: { code: "request_too_large" } }]);
  expect([asked(), service.http.ingress.bytes]).toEqual([0, 0]);
});

test("a chunked body is refused as soon as it passes the limit", async () => {
  const { chat, key, service } = await stage();
  const { stream, asked } = parts(100, MiB);
  const response = await chat("", { headers: { authorization: `Bearer ${key}` }, body: stream });
  expect([response.status, await response.json()]).toMatchObject([413, { error: { code: "request_too_large" } }]);
  expect([asked(), service.http.ingress.bytes]).toEqual([9, 0]);
});

test("a body of exactly 8 MiB is read", async () => {
  const { chat } = await stage();
  const text = JSON.stringify(observation());
  const response = await chat(text + " ".repeat(8 * MiB - text.length));
  expect(response.status).toBe(200);
});

test("bodies over the budget of all requests are refused with 503 and Retry-After, and take no share", async () => {
  const clock = new FakeClock();
  const ingress = new Ingress(100);
  const options = { bytesMax: 1000, ingress, owner: "a", clock, ...ROBOT_WAY };
  const first = await readBody(post("x".repeat(60), { "content-length": "60" }), options);
  if (first instanceof Failure) throw new Error(first.message);
  expect([first.length, ingress.bytes]).toEqual([60, 60]);
  const refused = { code: "engine_unavailable", status: 503, retryAfterSeconds: 1 };
  expect(await readBody(post("x".repeat(60), { "content-length": "60" }), options)).toMatchObject(refused);
  expect(await readBody(post(parts(3, 20).stream), options)).toMatchObject(refused);
  expect(ingress.bytes).toBe(60);
  first.release();
  expect([ingress.bytes, clock.armed]).toEqual([0, 0]);
});

test("one account's bodies leave a quarter of the budget to others", async () => {
  const [clock, ingress] = [new FakeClock(), new Ingress(100)];
  const read = (owner: string, bytes: number) =>
    readBody(post("x".repeat(bytes)), { bytesMax: 1000, ingress, owner, clock, ...ROBOT_WAY });
  const bodies = [await read("a", 75), await read("a", 1), await read("b", 25), await read("b", 1)];
  expect(bodies.map((body) => body instanceof Failure)).toEqual([false, true, false, true]);
  for (const body of bodies) if (!(body instanceof Failure)) body.release();
  expect([ingress.bytes, await read("a", 75)]).toMatchObject([0, { length: 75 }]);
});

test("a Content-Length that is no whole number counts as none: what is read is counted", async () => {
  const ingress = new Ingress(100);
  for (const declared of ["5, 5", "", "x", "-5", "1e9", "0x10"]) {
    const options = { bytesMax: 1000, ingress, owner: "a", clock: new FakeClock(), ...ROBOT_WAY };
    const body = await readBody(post("hello", { "content-length": declared }), options);
    if (body instanceof Failure) throw new Error(`${declared}: ${body.message}`);
    expect([declared, body.length, ingress.bytes]).toEqual([declared, 5, 5]);
    body.release();
    expect(ingress.bytes).toBe(0);
  }
});

test("the budget counts whole numbers of bytes only", () => {
  const ingress = new Ingress(100);
  for (const bytes of [Number.NaN, -1, 0.5, 2 ** 53]) expect(() => ingress.add("a", bytes)).toThrow("whole number");
  expect(ingress.bytes).toBe(0);
});

test("a body that does not arrive in time is given up", async () => {
  const clock = new FakeClock();
  const ingress = new Ingress();
  // What is announced takes nothing of the budget, what has arrived does; a small body counts from its beginning.
  for (const [bytes, taken] of [
    [20_000, 0],
    [1000, 1000],
  ] as const) {
    const stuck = new ReadableStream({ pull: () => new Promise(() => {}) });
    const options = { bytesMax: 20_000, ingress, owner: "a", clock, ...ROBOT_WAY };
    const reading = readBody(post(stuck, { "content-length": String(bytes) }), options);
    expect(ingress.bytes).toBe(taken);
    clock.advance(30_000);
    expect(await reading).toMatchObject({ code: "invalid_body" });
    expect(ingress.bytes).toBe(0);
  }
});

const parsed = (text: string) => parseObject(new TextEncoder().encode(text));

test("depth 64 and 20,000 values pass; one more of either does not", () => {
  const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
  expect([typeof parsed(nested(64)), parsed(nested(65))]).toEqual(["object", expect.stringContaining("64 levels")]);
  const wide = (values: number) =>
    `{"a":[${Array(values - 2)
      .fill("{}")
      .join(" , ")}]}`;
  expect([typeof parsed(wide(20_000)), parsed(wide(20_001))]).toEqual(["object", expect.stringContaining("20000")]);
  const object = (values: number) => `{${Array.from({ length: values - 1 }, (_, i) => `"${i}": "x"`).join(",")}}`;
  expect([typeof parsed(object(20_000)), typeof parsed(object(20_001))]).toEqual(["object", "string"]);
});

test("brackets, commas and quotes inside strings are no structure", () => {
  const text = JSON.stringify({ a: '[[{"\\",,'.repeat(10_000), 'b"\\': "\\", c: "]}" });
  expect(parsed(text)).toEqual(JSON.parse(text));
});

test("hostile bodies are refused", () => {
  const hostile = [
    "[".repeat(200_000),
    `{"a":${"[],".repeat(1_000_000)}`,
    '"'.repeat(1_000_000),
    '"\\'.repeat(500_000),
    "",
    "\u0000",
  ];
  for (const text of hostile) expect([text.slice(0, 9), typeof parsed(text)]).toEqual([text.slice(0, 9), "string"]);
  expect(parseObject(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d))).toBeString();
});
