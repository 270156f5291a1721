/** The entry point of SQLite's writer thread, a Worker: the loop with the domains of this program. */
import { type FromWriter, type ToWriter, WriterLoop } from "../store/sqlite/writer.ts";
import { DOMAINS } from "./domains.ts";

declare const self: Worker;

const loop = new WriterLoop(DOMAINS, (message: FromWriter) => self.postMessage(message));

self.onmessage = ({ data }: MessageEvent<ToWriter>) => loop.receive(data);
