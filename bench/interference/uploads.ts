/** An upload beside a robot, counted in MB. */
import { connect, type Socket } from "node:net";
import { randomBytes } from "../runs/upload.ts";
import type { Counter, Order } from "./kinds.ts";

const FILE_BYTES = 64 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
/** Files of one run: 2 GiB at most. */
const RUN_FILES = 30;

/** The run of a file, another one for each load and each `RUN_FILES` files. */
function runOf({ url, kind, isControl }: Order, number: number): string {
  return `${url}/v1/robot/runs/bench/${kind}-${isControl}-${Math.floor(number / RUN_FILES)}`;
}

/** An upload at the speed of such a line: one piece every few milliseconds. */
export function pacedUpload(order: Order, bytesPerSecond: number, counter: Counter): void {
  const bytes = randomBytes(Math.floor(FILE_BYTES * order.share));
  const begun = performance.now();
  let due = 0;
  const file = async (number: number) => {
    const { hostname, port, pathname } = new URL(`${runOf(order, number)}/files/file-${number}`);
    const socket = connect(Number(port), hostname);
    const answer = answerOf(socket);
    const head = [`PUT ${pathname} HTTP/1.1`, `Host: ${hostname}`, `Authorization: Bearer ${order.apiKey}`];
    socket.write([...head, `Content-Length: ${bytes.length}`, "Connection: close", "", ""].join("\r\n"));
    for (let at = 0; at < bytes.length && !counter.isStopped; at += PIECE_BYTES) {
      due += PIECE_BYTES;
      const wait = begun + (due / bytesPerSecond) * 1000 - performance.now();
      if (wait > 0) await Bun.sleep(wait);
      const taken = Promise.withResolvers<void>();
      socket.write(bytes.subarray(at, at + PIECE_BYTES), () => taken.resolve());
      await Promise.race([taken.promise, answer]);
      counter.sent(PIECE_BYTES / 1e6);
    }
    const text = counter.isStopped ? undefined : await answer;
    socket.destroy();
    return text === undefined || /^HTTP\/1\.1 20[01] /.test(text) ? undefined : text.slice(0, 200);
  };
  const all = async () => {
    for (let number = 0; !counter.isStopped; number += 1) counter.answered(await file(number));
  };
  all().catch((error: Error) => counter.answered(error.message));
}

async function answerOf(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.once("data", (data) => resolve(data.toString()));
  socket.once("error", (error) => resolve(error.message));
  socket.once("close", () => resolve("no answer"));
  return await promise;
}
