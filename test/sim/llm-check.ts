/** The promises of the language models, looked at from outside: what a history must keep, whatever happened in it. */
import { assert, present } from "../../src/std/assert.ts";
import type { LlmHistory } from "./llm-history.ts";
import { answerOf } from "./llm-provider.ts";
import type { LlmReply, LlmSent } from "./llm-requests.ts";
import { LLM_ACCOUNTS, type LlmWorld } from "./llm-world.ts";

interface Row {
  readonly id: string;
  readonly accountId: string;
  readonly key: string | null;
  readonly state: "queued" | "running" | "done" | "ended";
  readonly object: string | null;
  readonly cost: bigint | null;
  readonly held: bigint | null;
}

interface Ended {
  readonly id: string;
  readonly status: string;
  readonly output_text: string;
  readonly error: { readonly code: string } | null;
}

/** Answers that say nothing of what becomes of the request. */
const LATER = [
  ...["auth_unavailable", "billing_unavailable", "upstream_unavailable", "submission_outcome_unknown"],
  ...["stream_unavailable", "stream_timeout"],
];

/** A request is sent to the provider once; again only when the provider was not there, or the service stopped the call. */
export function checkCall({ world }: LlmHistory, mark: string): void {
  for (const call of world.calls.filter((one) => one.mark === mark)) {
    assert(call.outcome === "unavailable", `${mark} is sent again after a call that is ${call.outcome}`);
  }
}

/** No node that lives is taken to have ended: the faults of single operations are too few for that. */
export function checkLiving({ nodes, buried }: LlmWorld): void {
  for (const { killed, service } of nodes) {
    assert(killed || !buried.has(service.llm.deps.owner), "what a living node runs is ended by no other");
  }
}

/** After the last reply: each request has one, each response has ended, what was told is what is kept, and is paid for once. */
export async function checkLlmEnd(history: LlmHistory): Promise<void> {
  const { world, requests } = history;
  assert(world.faults.length === 0, `no fault of our own: ${world.faults.join()}`);
  checkLiving(world);
  for (const { index, replies, excused } of requests.sent) {
    assert(replies.length === 1 || (excused && replies.length === 0), `#${index} has one terminal reply`);
  }
  for (const node of world.nodes) node.expectIdle();
  const rows = world.store.rows<Row>(
    `SELECT responses.id AS id, responses.account_id AS "accountId", key, state, object, cost, charges.held AS held
     FROM responses LEFT JOIN charges ON charges.id = responses.id`,
  );
  await checkMoney(history, rows);
  checkRows(history, rows);
  for (const [id, account] of requests.ids) {
    const response = await history.anyNode().send(`/v1/responses/${id}`, account, {});
    history.expectShown(id, false, response.status, await response.text());
  }
  for (const sent of requests.sent) for (const reply of sent.replies) checkTold(history, rows, sent, reply);
}

async function checkMoney({ world }: LlmHistory, rows: readonly Row[]): Promise<void> {
  const { problem } = world.store.report();
  assert(problem === undefined, `the ledger is sound: ${problem}`);
  const accounts = await world.store.accounts.list();
  assert(Array.isArray(accounts) && accounts.every(({ held }) => held === 0n), "no money is held");
  const charges = world.store.rows<{ id: string }>("SELECT id FROM charges");
  const answered = rows.filter((row) => isAnswer(row));
  assert(
    charges
      .map(({ id }) => id)
      .sort()
      .join() ===
      answered
        .map(({ id }) => id)
        .sort()
        .join(),
    "what is charged is what is kept as an answer",
  );
}

function endedOf({ object }: Pick<Row, "object">): Ended | undefined {
  return object === null ? undefined : (JSON.parse(object) as Ended);
}

function isAnswer(row: Row): boolean {
  return row.state === "done" && /^(completed|incomplete)$/.test(endedOf(row)?.status ?? "");
}

/** Every response has ended; an answer is that of one call; and no answer of a call was lost while its process lived. */
function checkRows({ world }: LlmHistory, rows: readonly Row[]): void {
  const used = new Set<number>();
  for (const row of rows) {
    assert(row.state === "done" || row.state === "ended", `${row.id} has ended: ${row.state}`);
    const ended = endedOf(row);
    if (!ended) continue;
    assert(/^(completed|incomplete|failed)$/.test(ended.status), `${row.id} is ${ended.status}`);
    if (!isAnswer(row)) continue;
    const call = world.calls.find((one) => ended.output_text.endsWith(answerOf(one)));
    assert(call?.outcome === "answered" && !used.has(call.number), `${row.id} has the answer of one call, and alone`);
    used.add(call.number);
    assert(row.cost !== null && row.held !== null && row.cost > 0n && row.cost <= row.held, `${row.id} has its price`);
  }
  const lost = world.calls.filter(({ outcome, number }) => outcome === "answered" && !used.has(number));
  for (const { mark, caller } of lost) assert(caller.killed, `the answer to ${mark} is kept`);
}

/** What one reply has told is so, and stays so. */
function checkTold({ requests }: LlmHistory, rows: readonly Row[], sent: LlmSent, reply: LlmReply): void {
  const { index, account, key, job } = sent;
  const what = `#${index}, ${reply.code ?? reply.id}`;
  const of = (one: LlmSent) =>
    one.account === account && one.key === key && key !== undefined && one.body === sent.body;
  const later = requests.sent.filter((one) => of(one) && one.index > index).flatMap(({ replies }) => replies);
  const row = rows.find(({ id }) => id === reply.id);
  if (reply.id !== undefined) {
    assert(row?.accountId === LLM_ACCOUNTS[account], `${what}: a response that was told is there`);
    checkObject(present(row, "the row"), reply, what);
  }
  if (job && reply.id !== undefined) {
    assert(row?.state === "done", `${what}: an accepted job has an end`);
    for (const { id, code } of later)
      assert(id === reply.id || LATER.includes(code ?? ""), `${what}: its key is its own`);
  }
  const spent = ["idempotency_replay_terminal", "upstream_rejected", "invalid_upstream_response"];
  const ofKey = rows.find((one) => one.accountId === LLM_ACCOUNTS[account] && one.key === key);
  if (spent.includes(reply.code ?? "") && key !== undefined) {
    assert(ofKey?.state === "ended", `${what}: the key is spent`);
  }
  if (job || !/^(completed|incomplete)$/.test(endedOf({ object: reply.object ?? null })?.status ?? "")) return;
  assert(key === undefined || ofKey?.id === reply.id, `${what}: the key returns the answer`);
  for (const other of later.filter(({ after }) => after > reply.after)) {
    assert(!(other.id === reply.id && !reply.replayed && !other.replayed), `${what}: it is the first answer twice`);
    assert(
      other.object === reply.object || LATER.includes(other.code ?? ""),
      `${what}: a repeat was told ${other.code ?? other.object}`,
    );
  }
}

/**
 * The end that a client got is the one that is kept. A client gets a failure also when the store is down. Then the store may keep
 * a response that the client did not get, or, if the process ended before the store was back, one that stopped.
 */
function checkObject(row: Row, { object }: LlmReply, what: string): void {
  if (object === undefined || object === row.object) return;
  const [told, kept] = [endedOf({ object }), endedOf(row)];
  const untold = told?.error?.code === "submission_outcome_unknown" || kept?.error?.code === "server_error";
  assert(told?.status === "failed" && untold, `${what}: told ${object}, kept ${row.object}`);
}
