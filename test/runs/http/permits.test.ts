/** The permits of concurrent requests (`storage_busy`): those of bodies, those of all others, and those of answers that are being read. */
import { expect } from "bun:test";
import { connect } from "node:net";
import { LIMITS } from "../../../src/limits.ts";
import type { Person } from "../person.ts";
import { DEFAULT, MATRIX, onStores } from "../stage.ts";

/** A malformed range is answered with the whole file, which this process reads from a folder too. */
const READ_HERE = { range: "bytes=x" };

/** Bodies that go on until they are cut. */
function trickles(by: Person, count: number) {
  return Array.from({ length: count }, (_, index) => by.halfPut(`run-${index % 3}`, `f${index}`, 1_000, "x"));
}

onStores(DEFAULT, { fresh: true }, (test) => {
  test("an account whose bodies take all of its permits still reads, lists and deletes, and so do others", async ({
    at,
    ann,
  }) => {
    const bob = await at.person();
    await ann.completed("done", { a: "1" });
    const held = trickles(ann, LIMITS.runBodies.accountMax);
    while (at.service.runs.bodies.size < LIMITS.runBodies.accountMax) await Bun.sleep(5);
    const busy = await ann.put("more", "a", "1");
    expect([busy.said, busy.headers.get("retry-after")]).toEqual(["503 storage_busy", "1"]);
    expect((await ann.get("done", "a")).status).toBe(200);
    expect((await ann.list()).status).toBe(200);
    expect((await ann.erase("done")).status).toBe(204);
    expect((await bob.put("own", "a", "1")).status).toBe(201);
    for (const one of held) one.cut();
    while (at.service.runs.bodies.size > 0) await Bun.sleep(5);
  });

  test("an answer that is read here keeps its permit until its client has it, or leaves", async ({ at, ann }) => {
    await ann.completed("done", { a: new Uint8Array(32 * 2 ** 20) });
    const { downloads } = at.service.runs;
    const slow = unread(ann, "done", "a");
    while (downloads.size === 0) await Bun.sleep(5);
    await Bun.sleep(50);
    expect(downloads.size).toBe(1);
    slow.destroy();
    while (downloads.size > 0) await Bun.sleep(5);
    const whole = await ann.get("done", "a", READ_HERE);
    expect([whole.status, whole.bytes.length]).toEqual([200, 32 * 2 ** 20]);
  });
});

onStores(
  MATRIX.filter(({ engine }) => engine === "SQLite"),
  { fresh: true },
  (test) => {
    test("readers that take every place of a run's downloads delay nothing else of it", async ({ at, ann }) => {
      await ann.completed("done", { a: new Uint8Array(16 * 2 ** 20) });
      const { runMax } = LIMITS.runDownloads;
      const slow = Array.from({ length: runMax }, () => unread(ann, "done", "a"));
      while (at.service.runs.downloads.size < runMax) await Bun.sleep(5);
      expect((await ann.get("done", "a", READ_HERE)).said).toBe("503 storage_busy");
      const head = await ann.send("HEAD", "/v1/robot/runs/arm/done/files/a");
      const others = [ann.manifest("done"), ann.list(), ann.usage(), ann.put("other", "b", "1")];
      expect([head.status, ...(await Promise.all(others)).map(({ said }) => said)]).toEqual([
        ...[200, "200", "200", "200", "201"],
      ]);
      expect((await ann.erase("done")).status).toBe(204);
      for (const one of slow) one.destroy();
      while (at.service.runs.downloads.size > 0) await Bun.sleep(5);
    });
  },
);

/** A download whose client reads nothing, so that its answer does not end. */
function unread({ url, key }: Person, run: string, path: string) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  const head = [`GET /v1/robot/runs/arm/${run}/files/${path} HTTP/1.1`, "Host: x", `Authorization: Bearer ${key}`];
  socket.write([...head, `Range: ${READ_HERE.range}`, "", ""].join("\r\n"));
  return socket.on("error", () => {}).pause();
}
