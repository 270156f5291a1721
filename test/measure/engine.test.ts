/** The engine of a command keeps its process alive. */
import { expect, test } from "bun:test";
import { withEngine } from "../../src/measure/engine.ts";
import { present } from "../../src/std/assert.ts";

test("a timer is due for as long as the work takes, however long that is, and none afterwards", async () => {
  const due = new Set<() => void>();
  const clock = {
    after(_ms: number, call: () => void) {
      due.add(call);
      return () => due.delete(call);
    },
  };
  const seen = await withEngine(
    1,
    async () => {
      const counts: number[] = [];
      for (let times = 0; times < 3; times += 1) {
        const [call] = [...due];
        due.clear();
        present(call, "a timer")();
        counts.push(due.size);
      }
      return counts;
    },
    clock,
  );
  expect(seen).toEqual([1, 1, 1]);
  expect(due.size).toBe(0);
});
