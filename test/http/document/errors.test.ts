/** The tables of failures are those of the specification. */
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { OAUTH, OAUTH_ANSWERS } from "../../../src/account/oauth/protocol.ts";
import { LLM, LLM_ANSWERS } from "../../../src/llm/errors.ts";
import { ROBOT, ROBOT_ANSWERS } from "../../../src/robot/errors.ts";
import { RUNS, RUNS_ANSWERS } from "../../../src/runs/errors.ts";
import { EVERY } from "../../../src/std/every-route.ts";
import { Failure, type Table } from "../../../src/std/failure.ts";

/** Code and status as clients meet them over HTTP; and what the contract adds to the specification's table. */
const SPECIFIED: Readonly<Record<string, { table: Table; rows: string[]; added?: string[] }>> = {
  "### Every route": {
    table: EVERY,
    rows: [
      ...["401 missing_api_key", "401 invalid_api_key", "402 payment_required", "402 insufficient_credit"],
      ...["429 spend_limit_exceeded", "503 auth_unavailable", "503 billing_unavailable", "503 metering_unavailable"],
      "404 not_found",
    ],
    added: ["429 rate_limited", "500 internal_error"],
  },
  "### Robot models over HTTP (`POST /v1/chat/completions`)": {
    table: ROBOT,
    rows: [
      ...[
        "400 invalid_body",
        "400 model_missing",
        "400 model_not_found",
        "400 messages_missing",
        "400 no_user_message",
      ],
      ...["400 invalid_content", "400 invalid_content_part", "400 invalid_image_url", "400 unsupported_image_format"],
      ...["400 instruction_missing", "400 invalid_parameter", "400 handoff_unavailable", "400 session_missing"],
      ...["400 invalid_session_id", "400 state_missing", "400 state_shape_mismatch", "400 action_horizon_invalid"],
      ...["400 action_horizon_out_of_range", "400 num_inference_steps_invalid"],
      ...["400 num_inference_steps_out_of_range", "400 image_count_mismatch", "400 instruction_changed"],
      ...["400 invalid_image", "400 invalid_expected_step", "409 idempotency_conflict", "409 session_step_conflict"],
      ...["409 observation_outcome_unknown", "503 observation_outcome_unknown", "409 session_busy"],
      ...["410 session_expired", "413 image_too_large", "413 request_too_large", "429 no_replica_free"],
      ...["500 model_failure", "503 engine_unavailable"],
    ],
    added: ["400 instruction_too_long", "400 invalid_observation_id"],
  },
  "### LLM models": {
    table: LLM,
    rows: [
      ...["422 invalid_request", "413 invalid_request", "422 invalid_idempotency_key", "409 idempotency_conflict"],
      ...["409 idempotency_replay_terminal", "409 submission_outcome_unknown", "4XX upstream_rejected"],
      ...["503 upstream_unavailable", "502 invalid_upstream_response", "503 unconfigured", "422 invalid_id"],
      "404 not_found",
    ],
    // A bug that has used up a key.
    added: ["500 internal_error"],
  },
  "### Robot runs": {
    table: RUNS,
    rows: [
      ...["404 run_not_found", "404 file_not_found", "404 upload_not_found", "409 upload_in_progress"],
      ...["409 run_incomplete", "429 too_many_uploads", "503 storage_busy", "411 length_required"],
      ...["413 request_too_large", "413 run_too_large", "413 storage_quota_exceeded", "416 invalid_range"],
      ...["422 checksum_mismatch", "422 invalid_request", "503 storage_unavailable"],
    ],
    added: ["409 run_completed", "412 precondition_failed"],
  },
};

describe("the tables", () => {
  for (const [title, { table, rows, added = [] }] of Object.entries(SPECIFIED)) {
    test(`${title.slice(4)}: every code with its status, and no other`, () => {
      const found = Object.values(table)
        .filter(({ http }) => http !== undefined)
        .map((row) => `${row.statuses ?? row.status} ${row.wire}`);
      // Two rows may be one code on the wire.
      expect([...new Set(found)].toSorted()).toEqual([...rows, ...added].toSorted());
    });
  }

  const specification = Bun.file(resolve(import.meta.dir, "../../../../shared/spec/interface.md"));
  test("the lists above are those of the specification, where that is at hand", async () => {
    if (!(await specification.exists())) return;
    const errors = (await specification.text()).split("\n## Errors\n")[1]?.split("\n## ")[0] ?? "";
    for (const [title, { rows }] of Object.entries(SPECIFIED)) {
      const section = errors.split(`${title}\n`)[1]?.split("\n### ")[0] ?? "";
      const found = [...section.matchAll(/^\| (\S+|\d+ or \d+) \| `(\w+)` \|/gm)].flatMap(([, statuses = "", code]) =>
        statuses
          .split(" or ")
          // Choices that the contract makes among those of the specification.
          .map((status) => ({ "4xx": "4XX", "5xx": "503" })[status] ?? status)
          .filter((status) => status !== "502" || code !== "engine_unavailable")
          .map((status) => `${status} ${code}`),
      );
      expect([title, ...found.toSorted()]).toEqual([title, ...rows.toSorted()]);
    }
  });

  test("every row has a meaning where it is answered, and a full stop at its end", () => {
    for (const row of [EVERY, ROBOT, LLM, RUNS, OAUTH].flatMap((table: Table) => Object.values(table))) {
      const { http, socket, event } = row;
      const texts = [http, socket?.[1], event].filter((text) => text !== undefined);
      expect([row.code, texts.length > 0, texts.every((text) => text.endsWith("."))]).toEqual([row.code, true, true]);
      // A socket without a separate text uses the one of HTTP.
      expect([row.code, socket !== undefined && (socket[1] ?? http) === undefined]).toEqual([row.code, false]);
    }
  });

  test("the groups of the list of socket errors are those of the page, and stand together there", () => {
    const groups = [ROBOT, EVERY].flatMap((table: Table) =>
      Object.values(table).flatMap(({ socket }) => socket?.[0] ?? []),
    );
    const either = "Observations and session.open";
    const expected = ["Any message", "session.open", "Frames", "Observations", either, "The connection"];
    expect([...new Set(groups)]).toEqual(expected);
  });
});

describe("x-should-retry: false", () => {
  const finals = (table: Table) =>
    Object.values(table)
      .filter(({ final }) => final)
      .map(({ code }) => code);
  test("stands where a repeat of the same request cannot help", () => {
    expect(finals(EVERY)).toEqual(["payment_required", "insufficient_credit", "spend_limit_exceeded"]);
    expect(finals(ROBOT)).toEqual(["idempotency_conflict", "observation_lost"]);
    expect(finals(LLM)).toEqual([
      "invalid_request",
      "invalid_idempotency_key",
      "idempotency_conflict",
      "idempotency_replay_terminal",
      "upstream_rejected",
      "invalid_upstream_response",
      "response_broken",
      "invalid_id",
    ]);
  });
});

test("a request that fails before its handler is answered with the codes of its surface", () => {
  const answered = [ROBOT_ANSWERS, LLM_ANSWERS, RUNS_ANSWERS, OAUTH_ANSWERS].map((answers) =>
    [answers.tooLarge, answers.malformed, answers.unavailable].map((row) => `${row.status} ${row.wire}`),
  );
  expect(answered).toEqual([
    ["413 request_too_large", "400 invalid_body", "503 engine_unavailable"],
    ["413 invalid_request", "422 invalid_request", "503 upstream_unavailable"],
    ["413 request_too_large", "422 invalid_request", "503 storage_unavailable"],
    ["400 invalid_request", "400 invalid_request", "503 temporarily_unavailable"],
  ]);
});

test("a failure of a row with several statuses names its own", () => {
  expect(new Failure(LLM.upstream_rejected, "no", { status: 418 }).status).toBe(418);
  expect(new Failure(LLM.upstream_rejected, "no").status).toBe(400);
});
