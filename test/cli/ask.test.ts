/** What `tendon ask` shows while it waits and as the answer comes. The command itself: test/program/ask.test.ts. */
import { expect, test } from "bun:test";
import { Screen } from "../../src/cli/ask/screen.ts";
import { FakeClock } from "../std/fake-clock.ts";

function screen({ terminal = true } = {}) {
  const clock = new FakeClock();
  const shown: string[] = [];
  const drawn: string[] = [];
  const made = new Screen({
    clock,
    print: async (text) => {
      shown.push(text);
    },
    guarded: terminal,
    draw: terminal ? (text) => drawn.push(text) : undefined,
  });
  return { screen: made, clock, shown, drawn };
}

test("on a terminal a mark turns until something comes, and leaves nothing behind", async () => {
  const { screen: at, clock, shown, drawn } = screen();
  clock.advance(200);
  at.waitingFor("in progress");
  clock.advance(1_000);
  expect(drawn[0]).toBe("\r\u001b[K⠋ waiting, 0 s");
  expect(drawn.at(-1)).toEndWith(" in progress, 1 s");
  await at.piece("Hello");
  expect([drawn.at(-1), clock.armed]).toEqual(["\r\u001b[K", 0]);
  await at.end();
  expect(shown).toEqual(["Hello", "\n"]);
});

test("without a terminal nothing is drawn, and no timer runs", async () => {
  const { screen: at, clock, shown } = screen({ terminal: false });
  expect(clock.armed).toBe(0);
  await at.piece("a\u001b[31mb\n");
  await at.end();
  expect(shown.join("")).toBe("a\u001b[31mb\n");
});

test("a terminal gets no control characters, and every character whole", async () => {
  const { screen: at, shown } = screen();
  for (const piece of ["a\u001b[2J\tb\n", "\ud83e", "\udd16 👩‍🔧", "\ud83e"]) await at.piece(piece);
  await at.end();
  expect(shown).toEqual(["a [2J\tb\n", "🤖 👩‍🔧", "\ud83e", "\n"]);
});

test("an answer without a word ends without a line, and the mark is gone", async () => {
  const { screen: at, clock, shown, drawn } = screen();
  clock.advance(100);
  await at.end();
  expect([shown, drawn.at(-1), clock.armed]).toEqual([[], "\r\u001b[K", 0]);
});
