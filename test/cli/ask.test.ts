/** What `tendon ask` prints as the answer comes. The command itself: test/program/ask.test.ts. */
import { expect, test } from "bun:test";
import { Screen } from "../../src/cli/ask.ts";

async function printed(guarded: boolean, ...pieces: readonly string[]): Promise<string[]> {
  const shown: string[] = [];
  const screen = new Screen(async (text) => {
    shown.push(text);
  }, guarded);
  for (const piece of pieces) await screen.piece(piece);
  await screen.end();
  return shown;
}

test("a terminal gets no control characters, and every character whole; a file gets what came", async () => {
  const pieces = ["a\u001b[2J\tb\n", "\ud83e", "\udd16 👩‍🔧", "\ud83e"];
  expect(await printed(true, ...pieces)).toEqual(["a [2J\tb\n", "🤖 👩‍🔧", "\ud83e", "\n"]);
  expect((await printed(false, "a\u001b[31mb\n")).join("")).toBe("a\u001b[31mb\n");
  expect(await printed(true)).toEqual([]);
});
