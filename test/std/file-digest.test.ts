import { expect, spyOn, test } from "bun:test";
import { mkdir, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bytesDigest, fileDigest, keepDigests, noteDigest, recallDigests, sha256 } from "../../src/std/file-digest.ts";
import { temporaryFolder } from "../store/temporary.ts";

test("a file is hashed once as long as it stays as it is, and again after every change", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "graph.onnx");
  await writeFile(path, "one");
  using digests = spyOn(crypto.subtle, "digest");
  const expectDigest = async (text: string, times: number) => {
    expect(await Promise.all([fileDigest(path), fileDigest(path)])).toEqual([sha256(text), sha256(text)]);
    expect(digests).toHaveBeenCalledTimes(times);
  };
  await expectDigest("one", 1);
  await expectDigest("one", 1);
  // The kernel's clock, by which files are dated, ticks every few milliseconds.
  await Bun.sleep(20);
  const { atime, mtime } = await stat(path);
  await writeFile(path, "two");
  // It is as long and as old as before.
  await utimes(path, atime, mtime);
  await expectDigest("two", 2);
  const other = join(dir.path, "other");
  await writeFile(other, "six");
  await rename(other, path);
  await expectDigest("six", 3);
});

test("a file that cannot be read is an error each time, and bytes in memory have the same digest", async () => {
  for (const _ of [1, 2]) expect(fileDigest("/nonexistent/graph.onnx")).rejects.toThrow("ENOENT");
  expect(await bytesDigest(Buffer.from("one"))).toBe(sha256("one"));
});

test("many files are hashed a few at a time, each of them, also where some cannot be read", async () => {
  await using dir = await temporaryFolder();
  const paths = Array.from({ length: 20 }, (_, at) => join(dir.path, String(at)));
  await Promise.all(paths.map((path) => writeFile(path, path)));
  let [running, most] = [0, 0];
  const { digest } = crypto.subtle;
  using counted = spyOn(crypto.subtle, "digest");
  counted.mockImplementation(async (...given) => {
    running += 1;
    most = Math.max(most, running);
    return await digest.apply(crypto.subtle, given).finally(() => {
      running -= 1;
    });
  });
  const missing = fileDigest(join(dir.path, "missing")).catch(() => "missing");
  expect(await Promise.all(paths.map(fileDigest))).toEqual(paths.map((path) => sha256(path)));
  expect([await missing, running, most <= 4]).toEqual(["missing", 0, true]);
});

test("what is kept for the next start is what nobody can have changed unseen; what is kept wrongly, or for another file, counts for nothing", async () => {
  await using dir = await temporaryFolder();
  const at = (name: string) => join(dir.path, name);
  const [fresh, ours, other, kept] = [at("fresh"), at("making/lib"), at("made/lib"), at("kept.json")];
  await mkdir(at("making"));
  await Promise.all([fresh, ours].map((path) => writeFile(path, path)));
  // Changed a moment ago: a change in the same tick of the kernel's clock would have the same time.
  await fileDigest(fresh);
  await noteDigest(other, ours, sha256(ours));
  await rename(at("making"), at("made"));
  await keepDigests(kept);
  const { format, files } = JSON.parse(await readFile(kept, "utf8"));
  expect(files.filter(([path]: string[]) => path?.startsWith(dir.path))).toEqual([
    [other, expect.any(String), sha256(ours)],
  ]);
  expect((await stat(kept)).mode & 0o777).toBe(0o600);

  // Another process, since this one knows the files.
  const digestsWith = async (text: string) => {
    await writeFile(kept, text);
    const script = `import { fileDigest, recallDigests } from "${join(import.meta.dir, "../../src/std/file-digest.ts")}";
      await recallDigests("${kept}"); console.log(await fileDigest("${other}"));`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    return (await child.stdout.text()).trim();
  };
  const [[, identity]] = files.filter(([path]: string[]) => path === other);
  const claimed = (who: string, of = format) => JSON.stringify({ format: of, files: [[other, who, "claimed"]] });
  expect(await digestsWith(claimed(identity))).toBe("claimed");
  for (const text of [claimed(identity, 2), claimed("1 2 3 4 5"), `{"format":1,"files":[[1,2,3],null]}`, "{", ""]) {
    expect([text, await digestsWith(text)]).toEqual([text, sha256(ours)]);
  }
  await writeFile(other, ours);
  expect(await digestsWith(claimed(identity))).toBe(sha256(ours));
  await recallDigests(join(dir.path, "absent.json"));
});
