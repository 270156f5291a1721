/** `tendon admin ledger check`: compares every total with its entries. */
import { EXIT, type Problem } from "../../error/problem.ts";
import { printable } from "../../std/printable.ts";
import { usdText } from "../../std/usd.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command, Given } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notRead, STORE_FLAGS, withStore } from "../frame/store.ts";

export const ledgerCheck: Command = {
  name: "admin ledger check",
  summary: "Makes every total again from its entries and names the first row that is off; exit 1 if one is.",
  flags: STORE_FLAGS,
  run,
};

async function run(given: Given): Promise<number | Problem> {
  return await withStore(given, "refuse", async (store) => {
    const report = await store.charges.ledgerCheck();
    if (report instanceof StoreDown) return notRead(report);
    const { problem } = report;
    const ok = problem === undefined;
    const checked = { ok, entries: Number(report.entries), sum: usdText(report.sum), ...(ok ? {} : { problem }) };
    const size = `${checked.entries} entries, sum ${checked.sum}`;
    await answer(
      given,
      checked,
      ok ? `the ledger is sound: ${size}` : `the ledger is off: ${printable(problem)}; ${size}`,
    );
    return ok ? EXIT.done : EXIT.failed;
  });
}
