import { expect, test } from "bun:test";
import {
  type Busy,
  begin,
  beginAlone,
  commit,
  end,
  fail,
  pass,
  type SessionState,
} from "../../../src/robot/session/machine.ts";
import { Failure } from "../../../src/std/failure.ts";

const counts = { first: 3, later: 12 };
const idle = { kind: "idle", step: 4, instruction: "fold", sinceMs: 1_000 } as const;
const opening: Busy = { kind: "busy", step: 0, instruction: "fold", before: undefined, ending: false };
const busy: Busy = { kind: "busy", step: 4, instruction: "fold", before: idle, ending: false };

/** Every state that there is. */
const STATES = {
  new: { kind: "new" },
  idle,
  opening,
  "opening, ending": { ...opening, ending: true },
  busy,
  "busy, ending": { ...busy, ending: true },
  expired: { kind: "expired" },
} as const satisfies Record<string, SessionState>;

function request(changes: { instruction?: string; expectedStep?: number | undefined; images?: number } = {}) {
  return { instruction: "fold", expectedStep: undefined, images: 12, ...changes };
}

/** A state or failure in one word. */
function word(result: SessionState | Failure): string {
  if (result instanceof Failure) return result.code;
  if (result.kind === "idle") return `idle ${result.step} since ${result.sinceMs}`;
  if (result.kind !== "busy") return result.kind;
  return `${result.before ? "busy" : "opening"} ${result.step}${result.ending ? ", ending" : ""}`;
}

/** What each state becomes. */
function table(become: (state: SessionState) => SessionState | Failure): Record<string, string> {
  return Object.fromEntries(Object.entries(STATES).map(([name, state]) => [name, word(become(state))]));
}

const refusedWhileBusy = {
  opening: "session_busy",
  "opening, ending": "session_expired",
  busy: "session_busy",
  "busy, ending": "session_expired",
  expired: "session_expired",
};

test("every state × a request that is right for it", () => {
  const right = (state: SessionState) => begin(state, request({ images: state.kind === "new" ? 3 : 12 }), counts);
  expect(table(right)).toEqual({ new: "opening 0", idle: "busy 4", ...refusedWhileBusy });
});

test("every state × a request with the expected step, and with another", () => {
  const expecting = (expectedStep: number) => (state: SessionState) =>
    begin(state, request({ images: state.kind === "new" ? 3 : 12, expectedStep }), counts);
  expect(table(expecting(0))).toEqual({ new: "opening 0", idle: "session_step_conflict", ...refusedWhileBusy });
  expect(table(expecting(4))).toEqual({ new: "session_expired", idle: "busy 4", ...refusedWhileBusy });
  expect(table(expecting(5))).toEqual({
    new: "session_expired",
    idle: "session_step_conflict",
    ...refusedWhileBusy,
  });
});

test("every state × another instruction, and another number of images", () => {
  const other = (state: SessionState) =>
    begin(state, request({ images: state.kind === "new" ? 3 : 12, instruction: "sweep" }), counts);
  expect(table(other)).toEqual({ new: "opening 0", idle: "instruction_changed", ...refusedWhileBusy });
  const fewer = (state: SessionState) => begin(state, request({ images: state.kind === "new" ? 12 : 3 }), counts);
  expect(table(fewer)).toEqual({
    new: "image_count_mismatch",
    idle: "image_count_mismatch",
    ...refusedWhileBusy,
  });
});

test("every busy state × commit and fail", () => {
  const running = [opening, STATES["opening, ending"], busy, STATES["busy, ending"]];
  expect(running.map((state) => word(commit(state, 7)))).toEqual([
    "idle 1 since 7",
    "expired",
    "idle 5 since 7",
    "expired",
  ]);
  expect(running.map((state) => word(fail(state, 7)))).toEqual(["new", "new", "idle 4 since 7", "expired"]);
});

test("every state × the client ends the session", () => {
  expect(table(end)).toEqual({
    new: "new",
    idle: "expired",
    opening: "opening 0, ending",
    "opening, ending": "opening 0, ending",
    busy: "busy 4, ending",
    "busy, ending": "busy 4, ending",
    expired: "expired",
  });
});

test("every state × time: idle for 60 seconds expires, and nothing else does", () => {
  const same = table((state) => state);
  expect(table((state) => pass(state, 60_999))).toEqual(same);
  expect(table((state) => pass(state, 61_000))).toEqual({ ...same, idle: "expired" });
});

test("session stage, in this order: expired, busy, instruction, step, image count", () => {
  const wrong = { instruction: "other", expectedStep: 9, images: 1 };
  const code = (state: SessionState, changes: object) => word(begin(state, request(changes), counts));
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

test("expected_step above 0 without session_id: 409 session_step_conflict", () => {
  expect(beginAlone(request({ expectedStep: 1, images: 3 }), counts)).toMatchObject({
    code: "session_step_conflict",
    status: 409,
    param: "expected_step",
  });
  expect(beginAlone(request({ expectedStep: 0, images: 3 }), counts)).toBeUndefined();
  expect(beginAlone(request({ images: 12 }), counts)).toMatchObject({ code: "image_count_mismatch" });
});
