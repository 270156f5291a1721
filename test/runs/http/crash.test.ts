/** A `PUT` of a file during which the database crashes: it is 503, and its repeat is stored. */
import { expect } from "bun:test";
import { postgresServer } from "../../store/engines.ts";
import { fileOf } from "../person.ts";
import { onStores, RECORDS } from "../stage.ts";

const POSTGRES = RECORDS.filter(({ engine }) => engine === "PostgreSQL");

onStores(RECORDS, {}, (test) => {
  test("a PUT whose reservation the database lost, or another process ended, is 503, and its repeat is stored", async ({
    at,
    ann,
  }) => {
    const { store } = at.service.runs;
    const ended = async (id: string) => {
      await store.fileAbort({ ...ann, blobId: id, at: 0 });
    };
    const lost = (id: string) => at.place.corrupt(`DELETE FROM run_blobs WHERE id = '${id}'`);
    for (const [run, crash] of Object.entries({ ended, lost })) {
      await ann.put(run, "a", "1");
      const half = ann.halfPut(run, "b", 10, "12345");
      while ((await ann.room())[1] !== 10) await Bun.sleep(5);
      const [blob] = await at.rows("SELECT id FROM run_blobs WHERE state = 'coming'");
      await crash(String(blob?.id));
      half.write("67890");
      expect(await half.said).toBe("503 storage_unavailable");
      if (run === "lost") {
        // The crash that took the row took the totals of the same transaction with it.
        await at.place.corrupt("UPDATE robot_runs SET reserved = 0, coming = 0");
        await at.place.corrupt("UPDATE run_accounts SET reserved = 0");
      }
      const again = await ann.put(run, "b", "1234567890");
      expect(again.said).toBe("201");
      expect((await ann.complete(run, [fileOf("a", "1"), fileOf("b", "1234567890")])).said).toBe("200");
      expect(await at.wrong()).toEqual([]);
    }
  });
});

onStores(POSTGRES, {}, (test) => {
  test("a PUT during which PostgreSQL crashes is 503 while it is down, and its repeat is stored", async ({
    at,
    ann,
  }) => {
    await ann.put("crash", "a", "1");
    const half = ann.halfPut("crash", "b", 10, "12345");
    while ((await ann.room())[1] !== 10) await Bun.sleep(5);
    const server = postgresServer();
    await server.down();
    half.write("67890");
    expect(await half.said).toBe("503 storage_unavailable");
    expect((await ann.put("crash", "b", "1234567890")).status).toBe(503);
    await server.up();
    expect((await ann.put("crash", "b", "1234567890")).said).toBe("201");
    // The process that began the first one ends its reservation when it looks for what was left.
    await at.sweep();
    expect((await ann.complete("crash", [fileOf("a", "1"), fileOf("b", "1234567890")])).said).toBe("200");
    expect(await ann.room()).toEqual([11, 0]);
  });
});
