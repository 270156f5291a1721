/** Import that is ended by a signal, and one that must not begin: neither leaves anything. */
import { expect, test } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { importBundle } from "../../../src/bundle/import/import.ts";
import { emptyDir } from "../built.ts";

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("%s in the middle of an import ends it and leaves no file", async (signal, code) => {
  const parent = await emptyDir();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "waiting-child.ts"), join(parent, "out")], {
    stdout: "pipe",
  });
  await child.stdout.getReader().read();
  expect((await readdir(parent)).sort()).toEqual([
    expect.stringMatching(/^\.exact-.{6}$/),
    expect.stringMatching(/^out\.building-.{6}$/),
  ]);
  child.kill(signal);
  expect([await child.exited, child.signalCode]).toEqual([code, signal]);
  expect(await readdir(parent)).toEqual([]);
});

test("a place that holds something else is told before the checkpoint is read", async () => {
  const out = join(await emptyDir(), "out");
  await mkdir(out);
  await writeFile(join(out, "notes.txt"), "");
  const made = await importBundle("/nowhere", out, {
    ...{ id: "lab/act:arm", robot: "robot.toml", precision: "f32" },
    computeRows: async (_, { observations }) => observations,
    draw: async () => [],
  });
  expect(made).toMatchObject({ message: expect.stringContaining("holds something else than a bundle") });
});
