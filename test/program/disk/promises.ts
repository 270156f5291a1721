/** The promises about what was answered and charged, looked at in a database that was left by a crash. */
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { keyPublicId } from "../../../src/account/key.ts";
import { blobPath } from "../../../src/runs/blob/folder.ts";
import type { Store } from "../../../src/service/domains.ts";
import { openStore } from "../../../src/service/store.ts";
import { Problem } from "../../../src/std/problem.ts";
import { lookAtDatabase } from "../../../src/store/sqlite/store.ts";
import { StoreDown } from "../../../src/store/store.ts";
import type { Happened } from "./history.ts";
import { must } from "./must.ts";

const CREDIT = 25_000_000_000n;

/** Opens the folder as `serve` does, and throws at the first promise that is not kept; `number`: operations before the crash. */
export async function expectPromises(dir: string, { told, ...happened }: Happened, number: number): Promise<void> {
  const store = await openStore({ dataDir: dir, databaseUrl: undefined }, "serve");
  if (store instanceof Problem) throw new Error(`the next start fails: ${store.message}`);
  try {
    await expectMoney(store, happened, number);
  } finally {
    await store.close();
  }
  const whole = lookAtDatabase(dir);
  must(whole === "whole", `the database is ${whole instanceof Problem ? whole.message : whole}`);
  using db = new Database(join(dir, "tendon.sqlite"), { readonly: true, strict: true });
  const all = <Row>(sql: string) => db.query<Row, []>(sql).all();
  const charged = new Set(
    all<{ id: string }>("SELECT id FROM charges WHERE settled_at IS NOT NULL").map(({ id }) => id),
  );
  const kept = all<{ id: string; name: string }>(
    `SELECT generation_id AS id, observation_id AS name FROM observations
     UNION ALL SELECT id, key FROM responses WHERE state = 'done'`,
  );
  const keptIds = new Set(kept.map(({ id }) => id));
  for (const id of charged) must(keptIds.has(id), `${id} is charged, and its answer is not kept`);
  must(keptIds.size === kept.length, "an answer is kept twice");
  const files = all<{ id: string; path: string; size: number; sha256: Uint8Array }>(
    "SELECT blob_id AS id, path, size, sha256 FROM run_files",
  );
  for (const { id, size, sha256 } of files) {
    const bytes = readFileSync(blobPath(dir, id));
    const digest = new Bun.CryptoHasher("sha256").update(bytes).digest();
    must(bytes.length === size && digest.equals(sha256), `the file ${id} of a run is not what its record says`);
  }
  for (const { ask, reply } of told.filter(({ operations }) => operations <= number)) {
    must(
      ask.path === undefined || files.some(({ path }) => path === ask.path),
      `${ask.name} was answered, and is lost`,
    );
    if (!ask.paid) continue;
    const [, name = ""] = /(\S+)$/.exec(ask.name) ?? [];
    const row = kept.find((one) => one.name === name);
    must(row !== undefined, `${ask.name} was answered, and is lost`);
    must(
      reply.chargeId === undefined || row?.id === reply.chargeId,
      `${ask.name} was answered, and another answer is kept`,
    );
    must(row !== undefined && charged.has(row.id), `${ask.name} was answered, and is not charged`);
  }
  const runs = told.find(({ ask }) => ask.name.startsWith("complete"));
  if (runs !== undefined && runs.operations <= number) {
    must(all("SELECT id FROM robot_runs WHERE manifest IS NOT NULL").length === 1, "a completed run is lost");
  }
}

async function expectMoney(store: Store, happened: Omit<Happened, "told">, number: number): Promise<void> {
  const { key, keyTold, accountId } = happened;
  const report = await store.charges.ledgerCheck();
  const problem = report instanceof StoreDown ? report.reason : report.problem;
  must(problem === undefined, `the ledger is not sound: ${problem}`);
  if (number < keyTold) return;
  const [found, account] = [
    await store.accounts.keyByPublicId(keyPublicId(key) ?? ""),
    await store.accounts.accountById(accountId),
  ];
  must(found !== undefined && !(found instanceof StoreDown), "a key that was told is lost");
  if (account === undefined || account instanceof StoreDown) throw new Error("an account that was told is lost");
  must(account.credits === CREDIT, `a credit that was told is lost: ${account.credits}`);
}
