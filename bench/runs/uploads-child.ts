/**
 * Uploads in a process of their own: `bun bench/runs/uploads-child.ts URL KEY MB_PER_SECOND`, 0 for as fast as four at once can.
 * Says "open" when the first bytes have gone; to the message "stop" it answers how much it has sent since "count".
 */
import { connect, type Socket } from "node:net";
import { Problem } from "../../src/std/problem.ts";
import { randomBytes } from "./throughput.ts";
import { putFiles } from "./upload.ts";

const [url = "", apiKey = "", rate = "0"] = process.argv.slice(2);
const FILE_BYTES = 64 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
/** Files of one run: 2 GiB at most. */
const RUN_FILES = 30;
const bytes = randomBytes(FILE_BYTES);

let sent = 0;
let since = performance.now();
let said = false;

function count(length: number): void {
  sent += length;
  if (!said) process.send?.("open");
  said = true;
}

process.on("message", (message) => {
  if (message === "stop") {
    process.send?.({ mb_per_second: sent / 1e6 / ((performance.now() - since) / 1000) });
    process.exit(0);
  }
  sent = 0;
  since = performance.now();
});

function failed(problem: Problem): never {
  process.stderr.write(`uploads-child.ts: ${problem.message}\n`);
  process.exit(1);
}

async function flatOut(): Promise<never> {
  const worker = async (at: number) => {
    for (let number = 0; ; number += 1) {
      const store = { url: `${url}-${at}-${Math.floor(number / RUN_FILES)}`, apiKey };
      const problem = await putFiles(store, bytes, 1, 1);
      if (problem) failed(problem);
      count(FILE_BYTES);
    }
  };
  return await Promise.race([0, 1, 2, 3].map(worker));
}

/** As over a line of that speed: a piece every few milliseconds. */
async function paced(bytesPerSecond: number): Promise<never> {
  const begun = performance.now();
  let due = 0;
  for (let number = 0; ; number += 1) {
    const { hostname, port, pathname } = new URL(`${url}-${Math.floor(number / RUN_FILES)}/files/file-${number}`);
    const socket = connect(Number(port), hostname);
    const answer = answerOf(socket);
    const head = [`PUT ${pathname} HTTP/1.1`, `Host: ${hostname}`, `Authorization: Bearer ${apiKey}`];
    socket.write([...head, `Content-Length: ${FILE_BYTES}`, "Connection: close", "", ""].join("\r\n"));
    for (let at = 0; at < FILE_BYTES; at += PIECE_BYTES) {
      due += PIECE_BYTES;
      const wait = begun + (due / bytesPerSecond) * 1000 - performance.now();
      if (wait > 0) await Bun.sleep(wait);
      const taken = Promise.withResolvers<void>();
      socket.write(bytes.subarray(at, at + PIECE_BYTES), () => taken.resolve());
      await Promise.race([taken.promise, answer]);
      count(PIECE_BYTES);
    }
    const text = await answer;
    socket.destroy();
    if (!/^HTTP\/1\.1 20[01] /.test(text)) failed(new Problem(`a file was answered ${text.slice(0, 200)}`));
  }
}

async function answerOf(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.once("data", (data) => resolve(data.toString()));
  socket.once("error", (error) => resolve(error.message));
  socket.once("close", () => resolve("nothing"));
  return await promise;
}

await (rate === "0" ? flatOut() : paced(Number(rate) * 1e6));
