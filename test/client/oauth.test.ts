/** Device login as the client does it, on a clock that does not wait. */
import { expect, test } from "bun:test";
import { awaitKey, beginLogin, deviceName, type PendingLogin } from "../../src/client/oauth.ts";
import type { Clock } from "../../src/std/clock.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { FakeService, refuse } from "./fake-service.ts";

/** A clock whose pauses take no time; `onPause` is told how many there have been. */
class HurriedClock implements Clock {
  readonly pausesMs: number[] = [];
  private nowMs = 0;

  constructor(private readonly onPause: (count: number) => void | Promise<void> = () => {}) {}

  unixMs(): number {
    return this.nowMs;
  }
  monotonicMs(): number {
    return this.nowMs;
  }
  after(ms: number, due: () => void): () => void {
    this.nowMs += ms;
    this.pausesMs.push(ms);
    Promise.resolve(this.onPause(this.pausesMs.length)).then(due).catch(reportError);
    return () => {};
  }
  every(): () => void {
    throw new Error("nothing repeats here");
  }
}

async function begun(service: FakeService): Promise<PendingLogin> {
  const pending = await beginLogin(service.url, "test");
  if (pending instanceof Problem) throw new Error(pending.message);
  return pending;
}

test("slow_down lengthens the interval by 5 s, for good", async () => {
  await using service = new FakeService();
  service.interval = 2;
  const [slower, pending] = [() => refuse("slow_down"), () => refuse("authorization_pending")];
  service.polls = [pending, slower, pending, slower];
  const clock = new HurriedClock();
  expect(await awaitKey(service.url, await begun(service), clock)).toBe(service.keys[0] ?? "");
  expect(clock.pausesMs).toEqual([2_000, 2_000, 7_000, 7_000, 12_000]);
});

test("the service's interval is taken within 1 to 60 s, and is 5 s if it names none", async () => {
  await using service = new FakeService();
  const asked = [undefined, 0, -5, 7, 100_000];
  const taken: number[] = [];
  for (service.interval of asked) taken.push((await begun(service)).intervalSeconds);
  expect(taken).toEqual([5, 1, 1, 7, 60]);
});

test("a service that restarts or is overloaded does not end the login", async () => {
  await using service = new FakeService();
  const overloaded = () => new Response("", { status: 503 });
  service.polls = [() => refuse("authorization_pending"), overloaded, () => refuse("authorization_pending")];
  const clock = new HurriedClock(async (count) => {
    if (count === 2) await service.stop();
    if (count === 8) service.restart();
  });
  expect(await awaitKey(service.url, await begun(service), clock)).toBe(service.keys[0] ?? "");
  // One answer, six refused connections, one 503, one answer, the key.
  expect(clock.pausesMs).toEqual([1, 1, 2, 4, 8, 16, 30, 30, 30, 1].map((seconds) => seconds * 1000));
});

test("the wait ends when the code has expired, also if the service stays away", async () => {
  await using service = new FakeService();
  service.expiresIn = 20;
  const pending = await begun(service);
  service.polls = Array.from({ length: 30 }, () => () => refuse("authorization_pending"));
  const clock = new HurriedClock();
  expect(await awaitKey(service.url, pending, clock)).toMatchObject({
    exit: EXIT.failed,
    message: expect.stringContaining("expired"),
  });
  expect([clock.monotonicMs(), service.polled]).toEqual([20_000, 20]);
  await service.stop();
  const away = new HurriedClock();
  expect(await awaitKey(service.url, pending, away)).toMatchObject({ exit: EXIT.unreachable });
  expect(away.monotonicMs()).toBe(20_000);
});

test("a machine's name is printable and at most 64 characters long", async () => {
  expect(deviceName("robot\u0007cell\n")).toBe("robot cell");
  expect(deviceName("é".repeat(80))).toBe("é".repeat(64));
  expect(deviceName(" ")).not.toBe("");
});

test("a login that the service has forgotten, and an answer that is no login, are problems", async () => {
  await using service = new FakeService();
  service.polls = [() => refuse("invalid_grant")];
  expect(await awaitKey(service.url, await begun(service), new HurriedClock())).toMatchObject({ exit: EXIT.failed });
  await using other = Bun.serve({ port: 0, fetch: () => Response.json({}) });
  expect(await beginLogin(`http://127.0.0.1:${other.port}`, "test")).toMatchObject({ exit: EXIT.failed });
});
