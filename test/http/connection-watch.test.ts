import { expect, test } from "bun:test";
import { connect, createServer } from "node:net";
import { listenersOf } from "../../src/http/connection-watch.ts";
import { ok } from "../engine/opened.ts";

const KIB = 1024;

/** Bytes that wait at the accepted sockets of a port: the receive queues of `/proc/net/tcp` (proc(5)). */
async function received(port: number): Promise<number> {
  const table = await Bun.file("/proc/net/tcp").text();
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = table.split("\n").map((line) => line.trim().split(/\s+/));
  const established = rows.filter(([, own = "", , state]) => own.endsWith(local) && state === "01");
  return established.reduce((sum, row) => sum + Number.parseInt(row[4]?.split(":")[1] ?? "0", 16), 0);
}

/** What the kernel keeps of a client that sends and is never read. */
async function keptOf(port: number): Promise<number> {
  const client = connect({ host: "127.0.0.1", port });
  client.on("error", () => undefined);
  client.write(new Uint8Array(32 * KIB * KIB));
  let kept = 0;
  for (;;) {
    await Bun.sleep(200);
    const now = await received(port);
    if (now > 0 && now === kept) break;
    kept = now;
  }
  client.destroy();
  return kept;
}

test("a port's new connections keep about as much unread as was said, instead of megabytes", async () => {
  const server = createServer({ pauseOnConnect: true }, (socket) => socket.on("error", () => undefined));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as { port: number };
  ok(await listenersOf(port)).receiveAtMost(256 * KIB);
  const kept = await keptOf(port);
  expect(kept).toBeGreaterThan(100 * KIB);
  expect(kept).toBeLessThan(512 * KIB);
  server.close();
});
