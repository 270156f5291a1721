/** What the operator reads when the database lost what it had confirmed: the log, `/readyz`, the metrics. */
import { expect, test } from "bun:test";
import { Drills } from "../../src/drill.ts";
import { publicApp } from "../../src/http/app.ts";
import { build } from "../../src/service/build.ts";
import { opsApp } from "../../src/service/ops/metrics.ts";
import type { LedgerChange } from "../../src/store/store.ts";
import { fakeStore } from "../account/fake-store.ts";
import { FakeClock } from "../std/fake-clock.ts";

const SERVERS = {
  before: { system: "1", database: "5", timeline: "00000001" },
  now: { system: "1", database: "5", timeline: "00000002" },
};

test("lost transfers are an error in the log, a warning of /readyz, which stays ready, and count in the metrics", async () => {
  let tell: (change: LedgerChange) => void = () => {};
  const errors: [string, object][] = [];
  const log = { info: () => {}, error: (event: string, facts: object = {}) => errors.push([event, facts]) };
  const store = { ...fakeStore(), onLedgerChange: (told: typeof tell) => (tell = told) };
  const settings = { chunkMs: 10_000, signUpOpen: false, drills: new Drills() };
  const service = build(settings, { clock: new FakeClock(), log, store });
  service.robot.catalog.known = true;
  const ready = async () => {
    const answer = await publicApp(service.http, service.surfaces).handle(new Request("http://localhost/readyz"));
    return [answer.status, await answer.json()];
  };
  const metrics = async () => {
    const app = opsApp(service.http, service.ops, () => undefined);
    const text = await (await app.handle(new Request("http://localhost/metrics"))).text();
    return text.split("\n").filter((line) => line.startsWith("tendon_ledger"));
  };
  expect(await ready()).toEqual([200, { status: "ready", models: [], placements: [] }]);
  tell({ ...SERVERS, checked: 9, missing: [] });
  expect([errors, await metrics()]).toEqual([[], ["tendon_ledger_lost_total 0", "tendon_ledger_lost_usd_total 0"]]);
  const missing = [1, 2].map((n) => ({ id: `gen_${n}`, accountId: "a", amount: 1_500_000_000n, at: n }));
  tell({ ...SERVERS, checked: 9, missing });
  expect(errors).toMatchObject([
    [
      "ledger lost",
      { checked: 9, missing: 2, usd: "3.000000000", newest: "gen_2 at 2", usd_by_account: "a 3.000000000" },
    ],
  ]);
  expect(await ready()).toMatchObject([200, { warnings: [expect.stringContaining("ledger lost")] }]);
  expect(await metrics()).toEqual(["tendon_ledger_lost_total 2", "tendon_ledger_lost_usd_total 3"]);
});
