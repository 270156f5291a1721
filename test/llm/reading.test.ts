/** `GET /v1/responses/{id}` and `GET /v1/models`, models without a provider, and who may read what. */
import { describe, expect, test } from "bun:test";
import type { NewAccount } from "../../src/account/store/accounts.ts";
import type { Store } from "../../src/service/domains.ts";
import { StoreDown } from "../../src/store/store.ts";
import { fakeStore, funded } from "../account/fake-store.ts";
import { ask, expectLedger, MANNERS, toldBy } from "./asking.ts";
import { JOB, LIVE, LlmStage } from "./stage.ts";

describe("GET of a response", () => {
  test.each(MANNERS)("%s: returns the object that the client got", async (manner) => {
    await using stage = await LlmStage.start();
    const { response } = await ask(stage, manner);
    expect(response?.id).toMatch(/^resp_[0-9A-Za-z]+$/);
    const got = await toldBy(await stage.get(`/v1/responses/${response?.id}`));
    expect([got.status, got.response]).toEqual([200, response]);
    expect(got.headers.get("x-request-id")).toMatch(/^req_/);
  });

  test("an id of another form is 422 invalid_id", async () => {
    await using stage = await LlmStage.start();
    const long = "a".repeat(65);
    for (const id of [
      "resp_",
      "resp_short",
      "msg_0VbhPfLveQlQKTtgLFhog69P",
      `resp_${long}`,
      "resp_0VbhPfLveQlQKTtgLFhog69%20",
      "x",
      "resp-1",
    ]) {
      const told = await toldBy(await stage.get(`/v1/responses/${id}`));
      expect([id, told.status, told.code]).toEqual([id, 422, "invalid_id"]);
      expect(told.headers.get("x-should-retry")).toBe("false");
    }
  });

  test("an unknown one is 404 not_found, and so is another account's", async () => {
    await using mine = await LlmStage.start({ accountId: "acct_1" });
    await using theirs = await LlmStage.start({ accountId: "acct_2", store: mine.store });
    for (const manner of ["live", "job"] as const) {
      const { response } = await ask(mine, manner);
      for (const told of [
        await toldBy(await theirs.get(`/v1/responses/${response?.id}`)),
        await toldBy(await theirs.get("/v1/responses/resp_0VbhPfLveQlQKTtgLFhog69P")),
      ])
        expect([told.status, told.code]).toEqual([404, "not_found"]);
    }
  });

  test("a store that is down is 503 upstream_unavailable, to be tried again", async () => {
    const store = fakeStore();
    let down = false;
    const response: Store["llm"]["response"] = async (key) =>
      down ? new StoreDown("switched off by the test") : await store.llm.response(key);
    await using stage = await LlmStage.start({ store: { ...store, llm: { ...store.llm, response } } });
    const { id } = (await ask(stage, "live")).response ?? {};
    down = true;
    const told = await toldBy(await stage.get(`/v1/responses/${id}`));
    expect([told.status, told.code, told.headers.get("retry-after")]).toEqual([503, "upstream_unavailable", "1"]);
    down = false;
    expect((await stage.get(`/v1/responses/${id}`)).status).toBe(200);
  });

  test("other methods on the path are 404", async () => {
    await using stage = await LlmStage.start();
    const { response } = await ask(stage, "live");
    for (const method of ["DELETE", "PUT", "PATCH", "POST"]) {
      const headers = { authorization: `Bearer ${stage.key}` };
      expect((await fetch(`${stage.url}/v1/responses/${response?.id}`, { method, headers })).status).toBe(404);
    }
  });
});

describe("the key of the account", () => {
  test("is needed on each route, before anything else is looked at", async () => {
    await using stage = await LlmStage.start();
    const paths = ["/v1/models", "/v1/responses/x", "/v1/responses"];
    for (const path of paths) {
      const init = path === "/v1/responses" ? { method: "POST", body: "{" } : {};
      const without = await toldBy(await fetch(`${stage.url}${path}`, init));
      expect([without.status, without.code]).toEqual([401, "missing_api_key"]);
      const wrong = await toldBy(
        await fetch(`${stage.url}${path}`, { ...init, headers: { authorization: "Bearer tdn_x" } }),
      );
      expect([wrong.status, wrong.code]).toEqual([401, "invalid_api_key"]);
    }
    expect(stage.provider.exchanges).toBeEmpty();
  });
});

describe("a model without a provider", () => {
  test.each([LIVE, JOB] as const)("%s: 503 unconfigured, the table to add is named, nothing is held", async (model) => {
    await using stage = await LlmStage.start({ without: [model] });
    for (const stream of [false, true]) {
      const told = await toldBy(await stage.post({ model, stream }));
      expect([told.status, told.code]).toEqual([503, "unconfigured"]);
      expect(told.message).toContain(`[llm."${model}"]`);
    }
    await expectLedger(stage, 0n);
  });

  test("stands in the list all the same, with its object as clients of OpenAI read it", async () => {
    await using stage = await LlmStage.start({ without: ["llm-c-k3:superfast"] });
    const list = (await (await stage.get("/v1/models")).json()) as { object: string; data: Record<string, unknown>[] };
    expect(list.object).toBe("list");
    expect(list.data.map(({ id }) => id)).toEqual([
      "llm-a-5.3:async",
      "llm-b-v4-flash:async",
      "llm-a-5.3:superfast",
      "llm-b-v4-flash:superfast",
      "llm-c-k3:superfast",
    ]);
    for (const one of list.data)
      expect(one).toEqual({ ...one, object: "model", created: expect.any(Number), owned_by: "tendon" });
  });

  test("a response of its time is still read, and its key still returns it", async () => {
    await using before = await LlmStage.start();
    const key = { "idempotency-key": "k" };
    const told = await ask(before, "live", {}, key);
    await using after = await LlmStage.start({ store: before.store, accountId: "acct_1", without: [LIVE] });
    expect((await after.get(`/v1/responses/${told.response?.id}`)).status).toBe(200);
    expect((await ask(after, "live", {}, key)).response).toEqual(told.response);
    expect((await ask(after, "live", { input: "Other" }, key)).code).toBe("idempotency_conflict");
  });
});

describe("money", () => {
  const CASES: readonly (readonly [code: string, status: number, account: Partial<NewAccount>])[] = [
    ["payment_required", 402, { credit: 1n }],
    ["insufficient_credit", 402, { credit: 1_000n }],
    ["spend_limit_exceeded", 429, { spendLimit: 1_000n }],
  ];

  test.each(CASES)("%s: nothing is held or sent, and the key stays free", async (code, status, account) => {
    const store = fakeStore();
    await store.accounts.accountAdd({ ...funded("acct_1", "a@example.org"), ...account });
    await using stage = await LlmStage.start({ store });
    // Who has nothing gets no key: so it is spent after the key is made.
    const spent = { accountId: "acct_1", transferId: "spent", amount: -1n, at: 0, month: 0 };
    if (account.credit === 1n) await store.charges.credit(spent);
    const key = { "idempotency-key": "k" };
    for (const manner of MANNERS) {
      const told = await ask(stage, manner, {}, key);
      expect([told.status, told.code, told.headers.get("x-should-retry")]).toEqual([status, code, "false"]);
      expect(told.headers.get("idempotency-key")).toBe("k");
    }
    await expectLedger(stage, 0n);
    expect(stage.provider.exchanges).toBeEmpty();
    const other = await ask(stage, "live", { input: "Another body." }, key);
    expect(other.code).toBe(code);
  });

  test("what is held counts: of two requests at once that one credit covers, one runs", async () => {
    const store = fakeStore();
    const hold = 600n * 32n + 2200n * 100n;
    await store.accounts.accountAdd({ ...funded("acct_1", "a@example.org"), credit: hold + hold / 2n });
    await using stage = await LlmStage.start({ store });
    stage.provider.otherwise = { kind: "answer", gapMs: 5 };
    const body = { input: "", max_output_tokens: 100 };
    const both = await Promise.all([ask(stage, "live", body), ask(stage, "live", body)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 402]);
    expect(stage.provider.exchanges).toHaveLength(1);
    await expectLedger(stage, "something");
  });
});
