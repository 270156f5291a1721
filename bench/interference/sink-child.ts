/**
 * The listener of a control, which does the least with what it gets: it hashes and writes a file, and reads and answers anything else.
 * A robot beside a load that goes here shows what the load itself takes of the cores and the disk. It answers a message with its address.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answerMessages } from "../child.ts";

const folder = mkdtempSync(join(tmpdir(), "tendon-bench-sink-"));
let count = 0;

async function keep(body: ReadableStream<Uint8Array> | null): Promise<Response> {
  count += 1;
  const file = await open(join(folder, `sink-${count}`), "wx");
  const hash = createHash("sha256");
  for await (const piece of body ?? []) {
    hash.update(piece);
    await file.write(piece);
  }
  await file.datasync();
  await file.close();
  return Response.json({ sha256: hash.digest("hex") }, { status: 201 });
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  websocket: { open: (socket) => socket.close(1008, "refused"), message: () => {} },
  async fetch(request, listener) {
    if (request.headers.get("upgrade") === "websocket" && listener.upgrade(request)) return undefined;
    if (request.method === "PUT") return await keep(request.body);
    await request.arrayBuffer();
    return Response.json({});
  },
});

process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
process.on("SIGTERM", () => process.exit(0));
answerMessages(() => server.url.origin);
