import { expect, test } from "bun:test";
import { Failure } from "../../src/error.ts";
import { type Busy, begin, beginAlone, commit, fail, type SessionState } from "../../src/session/machine.ts";

const counts = { first: 3, later: 12 };
const idle = { kind: "idle", step: 4, instruction: "fold", sinceMs: 0 } as const;
const busy = { kind: "busy", step: 4, instruction: "fold", before: idle } as const;

/** A request that is right for the idle session above, with changes. */
function request(changes: { instruction?: string; expectedStep?: number | undefined; images?: number } = {}) {
  return { instruction: "fold", expectedStep: undefined, images: 12, ...changes };
}

function code(state: SessionState, changes: Parameters<typeof request>[0] = {}): string {
  const result = begin(state, request(changes), counts);
  return result instanceof Failure ? result.code : `step ${result.step}`;
}

test("every state with every trigger", () => {
  const states: [string, SessionState, number][] = [
    ["new", { kind: "new" }, 3],
    ["idle", idle, 12],
    ["busy", busy, 12],
    ["expired", { kind: "expired" }, 3],
  ];
  const rows = states.map(([name, state, images]) => [
    name,
    code(state, { images }),
    code(state, { images, expectedStep: state.kind === "idle" ? 4 : 0 }),
    code(state, { images, expectedStep: 3 }),
    code(state, { images, instruction: "other" }),
    code(state, { images: images - 1 }),
  ]);
  expect(rows).toEqual([
    ["new", "step 0", "step 0", "session_expired", "step 0", "image_count_mismatch"],
    ["idle", "step 4", "step 4", "session_step_conflict", "instruction_changed", "image_count_mismatch"],
    ["busy", "session_busy", "session_busy", "session_busy", "session_busy", "session_busy"],
    ["expired", "session_expired", "session_expired", "session_expired", "session_expired", "session_expired"],
  ]);
});

test("session stage, in this order: expired, busy, instruction, step, image count", () => {
  const wrong = { instruction: "other", expectedStep: 9, images: 1 };
  expect([
    code({ kind: "expired" }, wrong),
    code(busy, wrong),
    code(idle, wrong),
    code(idle, { ...wrong, instruction: "fold" }),
    code(idle, { ...wrong, instruction: "fold", expectedStep: 4 }),
  ]).toEqual([
    "session_expired",
    "session_busy",
    "instruction_changed",
    "session_step_conflict",
    "image_count_mismatch",
  ]);
});

test("a chunk that goes out moves the step by one; one that does not leaves it", () => {
  const opening = begin({ kind: "new" }, request({ images: 3 }), counts) as Busy;
  expect(commit(opening, 7)).toEqual({ kind: "idle", step: 1, instruction: "fold", sinceMs: 7 });
  expect(fail(opening, 7)).toEqual({ kind: "new" });
  const next = begin(idle, request(), counts) as Busy;
  expect(commit(next, 7)).toEqual({ kind: "idle", step: 5, instruction: "fold", sinceMs: 7 });
  expect(fail(next, 7)).toEqual({ kind: "idle", step: 4, instruction: "fold", sinceMs: 7 });
});

test("expected_step above 0 without session_id: 409 session_step_conflict", () => {
  expect(beginAlone(request({ expectedStep: 1, images: 3 }), counts)).toMatchObject({
    code: "session_step_conflict",
    status: 409,
    param: "expected_step",
  });
  expect(beginAlone(request({ expectedStep: 0, images: 3 }), counts)).toBeUndefined();
  expect(beginAlone(request({ images: 12 }), counts)).toMatchObject({ code: "image_count_mismatch" });
});
