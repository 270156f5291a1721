/**
 * A start whose disk refuses its n-th operation, for every n of a first start and of one on a folder that was used. It becomes ready, or
 * it ends with 1 or 2 and says what is wrong where. Once the disk is repaired the next start works.
 */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { firstLine } from "../../../src/measure/child.ts";
import { CountedProvider } from "../counted-provider.ts";
import { Place, type Ready, Server } from "../program.ts";
import { chunk } from "./asks.ts";
import { Disk, type Strike } from "./disk.ts";
import { configuration, type Stage, serveOn } from "./history.ts";
import { must } from "./must.ts";

export interface Starting {
  /** Starts whose disk failed. */
  readonly faults: number;
  /** Those of them that ended with a message. */
  readonly ended: number;
}

interface Size {
  readonly modes: readonly Omit<Strike, "after">[];
  /** Operations of a start between two that fail. */
  readonly step: number;
}

/** Throws at the first start that says nothing, or after which none works. */
export async function startingRounds(frames: readonly Uint8Array[], { modes, step }: Size): Promise<Starting> {
  await using provider = await CountedProvider.start();
  await using place = await Place.make();
  await using disk = await Disk.make();
  await Bun.write(place.path("tendon.toml"), configuration(provider));
  const stage: Stage = { place, disk, frames };
  const counts = { faults: 0, ended: 0 };
  for (const used of [false, true]) {
    for (const mode of modes) {
      for (let after = 1 + (counts.faults % step); ; after += step) {
        await empty(disk);
        if (used) await leave(stage);
        const outcome = await start(stage, { ...mode, after });
        if (outcome === "whole") break;
        counts.faults += 1;
        counts.ended += Number(outcome === "ended");
      }
    }
  }
  return counts;
}

async function empty(disk: Disk): Promise<void> {
  for (const name of await readdir(disk.data)) await rm(join(disk.data, name), { recursive: true });
}

/** A folder as a service leaves it that is killed. */
async function leave(stage: Stage): Promise<void> {
  const server = await serveOn(stage, stage.disk.data);
  await chunk(stage.frames, "before").send({ url: server.ready.url, key: server.ready.api_key });
  server.child.kill("SIGKILL");
  await server.child.exited;
}

/** `whole`: nothing failed, since it had fewer operations. */
async function start(stage: Stage, strike: Strike): Promise<"whole" | "ended" | "ready"> {
  const { place, disk, frames } = stage;
  const what = `a start, ${strike.error} ${strike.lasting ? "from" : "at"} its operation ${strike.after}`;
  disk.strike(strike);
  const words = ["serve", "--dev", "--json", "--port", "0", "--config", place.path("tendon.toml"), "--data", disk.data];
  const child = place.spawn(words, disk.environment);
  const text = new Response(child.stderr).text();
  const line = await firstLine(child.stdout);
  const struck = disk.strikes > 0;
  if (line === undefined) {
    const code = await child.exited;
    expectClear(code, await text, disk.data, what);
  }
  disk.mend();
  if (line !== undefined) {
    const server = new Server(child, JSON.parse(line) as Ready);
    await expectWorks(server, frames, `${what}: ready, and then`, struck);
    await text;
  }
  disk.unlock();
  if (!struck) return "whole";
  const next = await serveOn(stage, disk.data);
  await expectWorks(next, frames, `after ${what}`, false);
  return line === undefined ? "ended" : "ready";
}

/** What a message tells to do. */
const REMEDY = /; .*(start again|restart|with --data)/;

/** One message, in which a person finds the folder and what to do. */
function expectClear(code: number, text: string, folder: string, what: string): void {
  const last = text.trim().split("\n").at(-1) ?? "";
  const clear = !/\n\s+at |"stack"|undefined|\[object/.test(text) && last.includes(folder) && REMEDY.test(last);
  must((code === 1 || code === 2) && clear, `${what}: ended with ${code}, and said: ${text}`);
}

/** A service that the fault has taken its store from says so, and ends in order all the same. */
async function expectWorks({ ready, child }: Server, frames: readonly Uint8Array[], what: string, struck: boolean) {
  const reply = await chunk(frames, "after").send({ url: ready.url, key: ready.api_key });
  const readiness = await fetch(`${ready.url}/readyz`);
  const down = struck && readiness.status === 503 && reply.status === 503;
  must(reply.status === 200 || down, `${what}: a chunk is ${reply.status} ${reply.said}, /readyz ${readiness.status}`);
  child.kill("SIGTERM");
  must((await child.exited) === 0, `${what}: it does not end in order`);
}
