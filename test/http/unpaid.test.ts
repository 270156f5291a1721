/**
 * Work that nobody pays for is bounded: refused requests and text descriptions of one account have a budget of processor time a
 * minute. Above it the answer is 429 `rate_limited` with `Retry-After`, before the body is read.
 */
import { describe, expect, test } from "bun:test";
import { appOf } from "../../src/http/app.ts";
import { json, NO_BODY } from "../../src/http/body-rules.ts";
import { KEY, type Outcome, type Route, route } from "../../src/http/route.ts";
import { Failure } from "../../src/std/failure.ts";
import type { Timer } from "../../src/std/slices.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { FAKE, fakeSurface, kit } from "./kit.ts";

/** A service whose route takes `ms` of processor time before it answers `outcome`. */
async function stand(method: "POST" | "GET" = "POST", unpaidSeconds = 5, free = false) {
  const clock = new FakeClock();
  const at = await kit({ clock, unpaidSeconds });
  const asked = {
    ms: 1_000,
    outcome: new Failure(FAKE.fake_missing, "no such thing") as Outcome,
    handled: 0,
    bodies: 0,
    later: (_timed: Timer): void => {},
  };
  const one: Route = route({
    method,
    path: "/v1/things",
    name: "things",
    key: KEY,
    body: method === "POST" ? json(2 ** 20) : NO_BODY,
    ...(free && { free }),
    // The declared type of a route has one body; here it is not looked at.
    handle: async ({ timed }: { timed: Timer }) => {
      asked.handled += 1;
      clock.advance(asked.ms);
      await Promise.resolve();
      asked.later(timed);
      return asked.outcome;
    },
  } as Parameters<typeof route>[0]);
  const app = appOf(at.deps, [fakeSurface([one])]);
  const send = async (body = "{}") => {
    const stream = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          asked.bodies += 1;
          controller.enqueue(new TextEncoder().encode(body));
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const response = await app.handle(
      new Request("http://localhost/v1/things", {
        method,
        headers: { authorization: `Bearer ${at.key}` },
        ...(method === "POST" && { body: stream }),
      }),
    );
    const text = await response.text();
    const code = response.status < 400 ? "" : (JSON.parse(text) as { error: { code: string } }).error.code;
    return { status: response.status, code, after: response.headers.get("retry-after") };
  };
  return { clock, asked, send };
}

describe("unpaid work", () => {
  test("of 5 s within a minute: the next request is refused before its body is read, until enough of it is a minute old", async () => {
    const { clock, asked, send } = await stand();
    for (let n = 0; n < 5; n += 1) expect(await send()).toMatchObject({ status: 404 });
    const { handled, bodies } = asked;
    expect([handled, bodies]).toEqual([5, 5]);
    const refused = await send();
    expect(refused).toMatchObject({ status: 429, code: "rate_limited" });
    expect([asked.handled, asked.bodies]).toEqual([5, 5]);
    const seconds = Number(refused.after);
    clock.advance((seconds - 1) * 1_000);
    expect((await send()).status).toBe(429);
    clock.advance(1_000);
    expect((await send()).status).toBe(404);
  });

  test("reading a body is work as well, also of one that is no JSON: 12.8 ms for 8 MiB", async () => {
    const { asked, send } = await stand("POST", 0.002);
    // 0.1 ms each; a larger one is read on other threads, whose time counts as it is.
    const body = "{".repeat(2 ** 16);
    let refused = 0;
    while ((await send(body)).status === FAKE.body_malformed.status) refused += 1;
    expect(refused).toBeWithin(19, 22);
    expect([asked.handled, asked.bodies]).toEqual([0, refused]);
    expect(await send(body)).toMatchObject({ status: 429, code: "rate_limited" });
  });

  test("what is paid, and what fails for no fault of the account, does not count", async () => {
    for (const outcome of [{ status: 200, body: "{}" }, new Failure(FAKE.fake_unavailable, "no")]) {
      const { asked, send } = await stand();
      asked.outcome = outcome;
      const statuses = new Set<number>();
      for (let n = 0; n < 12; n += 1) statuses.add((await send()).status);
      expect([...statuses]).toEqual([outcome.status]);
    }
  });

  test("an answer that is free counts", async () => {
    const { asked, send } = await stand();
    asked.outcome = { status: 200, body: "{}", unpaid: true };
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) statuses.push((await send()).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  });

  test("a route without a body that begins no work is still answered, unless nobody pays for what it answers", async () => {
    const { send } = await stand("GET");
    for (let n = 0; n < 8; n += 1) expect((await send()).status).toBe(404);
    const free = await stand("GET", 5, true);
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) statuses.push((await free.send()).status);
    expect([statuses, free.asked.handled]).toEqual([[404, 404, 404, 404, 404, 429], 5]);
  });

  test("work behind the handler's first await counts where the handler has it timed", async () => {
    const { clock, asked, send } = await stand();
    asked.ms = 0;
    asked.later = (timed) => timed(() => clock.advance(1_000));
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) statuses.push((await send()).status);
    expect(statuses).toEqual([404, 404, 404, 404, 404, 429]);
  });
});
