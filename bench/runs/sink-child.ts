/**
 * A server that does with a body what is least: hashes it and writes it to a new file, synced. `bun bench/runs/sink-child.ts FOLDER`
 * prints its address. What a robot feels beside it is what the cores and the disk make it feel.
 */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { print } from "../../src/cli/frame/print.ts";

const [folder = ""] = process.argv.slice(2);
let count = 0;

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    count += 1;
    const file = await open(join(folder, `sink-${count}`), "wx");
    const hash = createHash("sha256");
    for await (const piece of request.body ?? []) {
      hash.update(piece);
      await file.write(piece);
    }
    await file.datasync();
    await file.close();
    return Response.json({ sha256: hash.digest("hex") }, { status: 201 });
  },
});

await print(server.url.href.replace(/\/$/, ""));
