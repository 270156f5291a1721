import { expect, test } from "bun:test";
import { type Drills, readDrills } from "../src/drill.ts";
import { Problem } from "../src/std/problem.ts";

function drills(value: string): Drills {
  const read = readDrills(value);
  if (read instanceof Problem) throw new Error(read.message);
  return read;
}

function at(sessionId: string | undefined, step = 0, accountId = "a1") {
  return { accountId, model: "m1", sessionId, step };
}

test("a name alone strikes every request", () => {
  const both = drills("model_failure, slow_model");
  expect([both.strikes("model_failure", at("s")), both.strikes("slow_model", at(undefined))]).toEqual([true, true]);
  expect([both.strikes("result_lost", at("s")), drills("").strikes("model_failure", at("s"))]).toEqual([false, false]);
});

test("NAME:PREFIX strikes sessions whose id begins so, at every step", () => {
  const some = drills("engine_unavailable:drill-");
  const targets = [at("drill-1"), at("drill-1", 7), at("a-drill-1"), at(undefined)];
  expect(targets.map((target) => some.strikes("engine_unavailable", target))).toEqual([true, true, false, false]);
});

test("NAME:PREFIX@STEP strikes once, at that step of each such session", () => {
  const once = drills("result_lost:x@2,result_lost:y:z@0");
  const targets = [at("x1", 1), at("x1", 2), at("x1", 2), at("x1", 3), at("x2", 2), at("x1", 2, "a2"), at("y:z", 0)];
  expect(targets.map((target) => once.strikes("result_lost", target))).toEqual([
    false,
    true,
    false,
    false,
    true,
    true,
    true,
  ]);
});

test("what cannot be read is said", () => {
  const said = ["model_failur", "slow_model:", "auth_unavailable:s", "slow_model:@3"].map((value) => {
    const read = readDrills(value);
    return read instanceof Problem ? [read.exit, read.message] : read;
  });
  expect(said).toEqual([
    [2, 'TENDON_FAULTS, "model_failur": there is no drill "model_failur"; did you mean "model_failure"?'],
    [2, 'TENDON_FAULTS, "slow_model:": a prefix must follow the colon: of session ids, or of Idempotency-Keys'],
    [2, 'TENDON_FAULTS, "auth_unavailable:s": auth_unavailable takes no prefix'],
    [2, 'TENDON_FAULTS, "slow_model:@3": a prefix must follow the colon: of session ids, or of Idempotency-Keys'],
  ]);
});
