/** `docs/cli.md` is what the commands say now. */
import { expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { COMMANDS } from "../../src/cli/commands.ts";
import { cliPage } from "../../src/setup/cli-page.ts";

const committed = await Bun.file(join(resolve(import.meta.dir, "../.."), "docs/cli.md")).text();

test("the committed page is the generated one; `bun src/setup/cli-page.ts` writes it", async () => {
  expect(committed).toBe(await cliPage());
});

test("it has a section for each command", () => {
  const sections = [...committed.matchAll(/^## tendon (\w+)$/gm)].map(([, name]) => name ?? "");
  expect(sections).toEqual(Object.keys(COMMANDS));
});
