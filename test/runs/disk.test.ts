/** A disk without room: what it answers, what stays, and that it recovers by itself. */
import { expect, test } from "bun:test";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "../store/temporary.ts";
import { fileOf } from "./person.ts";
import { RunsStage } from "./stage.ts";

const MiB = 2 ** 20;

/** A file system of 8 MiB in the folder. */
function mounted(folder: string): boolean {
  return Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder]).exitCode === 0;
}

const privileged = process.getuid?.() === 0;

test.skipIf(!privileged)(
  "a full disk is storage_unavailable; what was complete stays, and with room again all goes on",
  async () => {
    await using dir = await temporaryFolder();
    const folder = join(dir.path, "full");
    await mkdir(folder);
    expect(mounted(folder)).toBe(true);
    try {
      await using at = await RunsStage.start({ dataDir: folder });
      const ann = await at.person();
      const bytes = new Uint8Array(2 * MiB).map((_, index) => (index * 2_654_435_761) >>> 11);
      await ann.completed("before", { a: bytes });
      const id = await ann.begun("parts", "a", { size: bytes.length, sha256: fileOf("", bytes).sha256 });
      expect((await ann.part("parts", "a", id, 1, bytes)).said).toBe("200");
      const filler = join(folder, "filler");
      await Bun.write(filler, new Uint8Array(3 * MiB));
      const room = await ann.room();
      const refused = [
        await ann.put("during", "a", bytes),
        await ann.part("parts", "a", id, 1, bytes),
        await ann.finish("parts", "a", id),
      ];
      expect(refused.map(({ said }) => said)).toEqual(refused.map(() => "503 storage_unavailable"));
      for (const { headers, json } of refused) {
        expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
        expect(json.error.message).toContain("no room");
        expect(json.error.message).not.toContain(folder);
      }
      expect(await ann.room()).toEqual(room);
      expect(await at.staged()).toEqual([]);
      expect(Buffer.compare((await ann.get("before", "a")).bytes, bytes)).toBe(0);
      expect((await ann.uploads("parts", "a", id)).json).toMatchObject({ received: [{ part: 1 }] });
      await rm(filler);
      expect((await ann.put("during", "a", bytes)).said).toBe("201");
      await ann.erase("during");
      await rm(join(folder, "blobs"), { recursive: true });
      // Bytes that are lost are told as such, not as an empty file.
      expect((await ann.get("before", "a")).said).toBe("503 storage_unavailable");
      expect((await ann.finish("parts", "a", id)).said).toBe("200");
      await ann.complete("parts", [fileOf("a", bytes)]);
      expect(Buffer.compare((await ann.get("parts", "a")).bytes, bytes)).toBe(0);
    } finally {
      Bun.spawnSync(["umount", "-l", folder]);
    }
  },
);

test("when the thread of the bytes has ended, who sends and who asks is told at once", async () => {
  await using at = await RunsStage.start();
  const ann = await at.person();
  const half = ann.halfPut("one", "a", 64 * MiB, new Uint8Array(MiB));
  while ((await at.staged()).length === 0) await Bun.sleep(5);
  at.service.runs.blobs.close();
  half.write(new Uint8Array(4 * MiB));
  expect(await half.said).toBe("503 storage_unavailable");
  half.cut();
  expect((await ann.put("one", "b", "1")).said).toBe("503 storage_unavailable");
  expect(await ann.room()).toEqual([0, 0]);
  // Emptied at the next start.
  await rm(join(at.dataDir, "staging/1"), { force: true });
});
