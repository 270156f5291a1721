/** The checks of a route before its handler, and what its declaration puts into the document: with a surface that no product has. */
import { describe, expect, test } from "bun:test";
import { appOf, publicApp } from "../../src/http/app.ts";
import { form, json, NO_BODY } from "../../src/http/body-rules.ts";
import { Ingress } from "../../src/http/deps.ts";
import type { Document } from "../../src/http/document/document.ts";
import { headers } from "../../src/http/operation.ts";
import { KEY, NO_KEY, type Route, route } from "../../src/http/route.ts";
import { Failure } from "../../src/std/failure.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { FAKE, fakeSurface, type Kit, kit } from "./kit.ts";

const operation = {
  operationId: "fake",
  summary: "A fake",
  responses: { "200": { description: "It is.", headers: headers() } },
};

/** A keyed route that says who asked what, and notes each call. */
function thing(calls: string[] = []): Route {
  return route({
    method: "POST",
    path: "/v1/things/:name",
    name: "things",
    key: KEY,
    body: json(100),
    beginsWork: true,
    paid: true,
    failures: [FAKE.fake_missing],
    operation,
    handle: async ({ principal, params, body, requestId }) => {
      calls.push(requestId);
      if (params.name === "none") return new Failure(FAKE.fake_missing, "no such thing", { param: "name" });
      return { status: 200, body: JSON.stringify([principal.accountId, params.name, body]) };
    },
  });
}

async function sent({ deps, key }: Kit, init: RequestInit & { path?: string }, one = thing()): Promise<Response> {
  const app = appOf(deps, [fakeSurface([one])]);
  const request = new Request(`http://localhost${init.path ?? "/v1/things/a%20b"}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    ...init,
  });
  return await app.handle(request);
}

const codeOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code: string } };
  return [response.status, error.code, response.headers.get("retry-after")];
};

describe("a route", () => {
  test("gives its handler the account, the path's parameters, the body and the response's own request id", async () => {
    const at = await kit();
    const calls: string[] = [];
    const response = await sent(at, { body: '{"x":1}' }, thing(calls));
    expect([response.status, await response.json()]).toEqual([200, ["acct_1", "a b", { x: 1 }]]);
    expect(calls).toEqual([response.headers.get("x-request-id") ?? ""]);
    expect(at.deps.ingress.bytes).toBe(0);
  });

  test("is checked in the order: route, key, size, syntax, then what the handler says", async () => {
    const at = await kit();
    const [long, wrong] = ["x".repeat(101), "[]"];
    const noKey = { headers: {} };
    expect(await codeOf(await sent(at, { path: "/v1/thing", body: long, ...noKey }))).toEqual([404, "not_found", null]);
    expect(await codeOf(await sent(at, { method: "PUT", body: long, ...noKey }))).toEqual([404, "not_found", null]);
    expect(await codeOf(await sent(at, { body: long, ...noKey }))).toEqual([401, "missing_api_key", null]);
    expect(await codeOf(await sent(at, { body: long }))).toEqual([413, "body_too_large", null]);
    const malformed = await sent(at, { body: wrong, path: "/v1/things/none" });
    expect(malformed.headers.get("x-should-retry")).toBe("false");
    expect(await codeOf(malformed)).toEqual([422, "body_malformed", null]);
    expect(await codeOf(await sent(at, { body: "{}", path: "/v1/things/none" }))).toEqual([404, "fake_missing", null]);
  });

  test("that begins work is refused while the service ends, after its key, and when the signal comes during the body", async () => {
    const at = await kit();
    const arriving = new ReadableStream({
      async pull(controller) {
        controller.enqueue(new TextEncoder().encode("{}"));
        controller.close();
        at.deps.lifecycle.draining = true;
      },
    });
    const calls: string[] = [];
    const refused = [503, "fake_unavailable", "7"];
    expect(await codeOf(await sent(at, { body: arriving }, thing(calls)))).toEqual(refused);
    expect(await codeOf(await sent(at, { body: "{}" }, thing(calls)))).toEqual(refused);
    expect(await codeOf(await sent(at, { body: "{}", headers: {} }, thing(calls)))).toEqual([
      401,
      "missing_api_key",
      null,
    ]);
    expect([calls, at.deps.ingress.bytes]).toEqual([[], 0]);
  });

  test("answers with its surface's rows when memory is full or a body does not come in time", async () => {
    const clock = new FakeClock();
    const full = await kit({ clock, ingress: new Ingress(1) });
    expect(await codeOf(await sent(full, { body: "{}" }))).toEqual([503, "fake_unavailable", "1"]);
    const at = await kit({ clock });
    const answered = sent(at, { body: new ReadableStream({ pull: () => new Promise(() => {}) }) });
    for (let turn = 0; clock.armed === 0 && turn < 100; turn += 1) await Bun.sleep(0);
    clock.advance(30_000);
    expect(await codeOf(await answered)).toEqual([422, "body_malformed", null]);
  });

  test("that breaks answers 500 and logs the stack under the request's id, and is counted", async () => {
    const at = await kit();
    const broken = route({
      method: "POST",
      path: "/v1/things/:name",
      name: "things",
      key: NO_KEY,
      body: NO_BODY,
      handle: async () => {
        throw new Error("a bug");
      },
    });
    const response = await sent(at, {}, broken);
    const id = response.headers.get("x-request-id");
    expect(await codeOf(response)).toEqual([500, "internal_error", null]);
    expect(at.logged).toMatchObject([
      { event: "request fault", facts: { request: id, stack: expect.stringContaining("a bug") } },
    ]);
    expect(await at.metrics.text()).toContain('tendon_requests_total{route="things",status="500"} 1');
  });

  test("may take a form, and no other content type", async () => {
    const at = await kit();
    const echo = route({
      method: "POST",
      path: "/v1/things/:name",
      name: "things",
      key: NO_KEY,
      body: form(20),
      handle: async ({ body }) => ({ status: 200, body: JSON.stringify([body("a"), body("b")]) }),
    });
    const answer = await sent(at, { body: new URLSearchParams({ a: "1 2" }), headers: {} }, echo);
    expect(await answer.json()).toEqual(["1 2", ""]);
    expect(await codeOf(await sent(at, { body: "a=1" }, echo))).toEqual([422, "body_malformed", null]);
    expect(
      await codeOf(await sent(at, { body: new URLSearchParams({ a: "x".repeat(30) }), headers: {} }, echo)),
    ).toEqual([413, "body_too_large", null]);
  });
});

describe("the document", () => {
  test("has the operation, the key and exactly the failures that follow from the declaration", async () => {
    const { deps } = await kit();
    const app = publicApp(deps, [fakeSurface([thing()])]);
    const document = (await (await app.handle(new Request("http://localhost/openapi.json"))).json()) as Document;
    const { post } = document.paths["/v1/things/{name}"] ?? {};
    expect([post?.tags, post?.security]).toEqual([["Fake"], [{ key: [] }]]);
    const codes = Object.entries(post?.responses ?? {}).flatMap(([status, { description }]) =>
      [...description.matchAll(/^- `(\w+)`/gm)].map(([, code]) => `${status} ${code}`),
    );
    expect(codes).toEqual([
      "401 missing_api_key",
      "401 invalid_api_key",
      "402 payment_required",
      "402 insufficient_credit",
      "404 fake_missing",
      "413 body_too_large",
      "422 body_malformed",
      "429 rate_limited",
      "429 spend_limit_exceeded",
      "500 internal_error",
      "503 auth_unavailable",
      "503 billing_unavailable",
      "503 metering_unavailable",
      "503 fake_unavailable",
    ]);
    expect(Object.keys(post?.responses["422"]?.headers ?? {})).toEqual(["X-Request-Id", "X-Should-Retry"]);
    // The page of another surface's errors says nothing of these.
    const episodes = await (await app.handle(new Request("http://localhost/docs/episodes"))).text();
    expect(episodes).not.toContain("fake_");
  });
});
