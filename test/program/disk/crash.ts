/** The power is lost after each operation of a small history, in several ways; the next start must find every promise kept. */
import { RandomStream } from "../../../src/std/random.ts";
import { CountedProvider } from "../counted-provider.ts";
import { Place } from "../program.ts";
import { Disk } from "./disk.ts";
import { configuration, type Happened, happen, type Stage, serveOn } from "./history.ts";
import { Image, LOSSES, type Loss } from "./image.ts";
import { must } from "./must.ts";
import { expectPromises } from "./promises.ts";

/** So long a sync takes, so that others write meanwhile. */
const SYNC_US = 500;

export interface Crashed {
  /** Operations of the history. */
  readonly operations: number;
  /** Losses of power, each with its store opened again. */
  readonly crashes: number;
  /** Those of them on which the whole service was started, and every answer asked for again. */
  readonly starts: number;
  readonly answered: number;
}

interface Size {
  /** Operations between two losses of power. */
  readonly step: number;
  /** Crashes between two after which the whole service is started. */
  readonly startStep: number;
}

/** Throws at the first promise that is not kept. */
export async function crashRounds(frames: readonly Uint8Array[], size: Size, seed: string): Promise<Crashed> {
  await using provider = await CountedProvider.start();
  await using place = await Place.make();
  await using disk = await Disk.make(SYNC_US);
  await Bun.write(place.path("tendon.toml"), configuration(provider));
  const stage: Stage = { place, disk, frames };
  const happened = await happen(stage);
  const { operations } = disk;
  const image = new Image(disk.journal());
  const folder = disk.beside("image");
  const random = new RandomStream(seed);
  let [crashes, starts] = [0, 0];
  for (let number = 1 + (random.word() % size.step); number <= operations; number += size.step) {
    image.through(number);
    for (const loss of LOSSES) {
      const what = `after operation ${number} of ${operations}, ${loss}, seed ${seed}`;
      await kept(what, async () => {
        await image.writeTo(folder, loss, random);
        await expectPromises(folder, happened, number);
      });
      crashes += 1;
      if (crashes % size.startStep !== 0) continue;
      await kept(`${what}, the service started`, async () => {
        await image.writeTo(folder, loss, random);
        await expectAgain(stage, folder, happened, number, loss);
      });
      starts += 1;
    }
  }
  return { operations, crashes, starts, answered: happened.told.length };
}

async function kept(what: string, look: () => Promise<void>): Promise<void> {
  try {
    await look();
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`);
  }
}

/** What was answered is answered again; what was not may be asked now, and is charged once. */
async function expectAgain(
  stage: Stage,
  folder: string,
  happened: Happened,
  number: number,
  loss: Loss,
): Promise<void> {
  const { told, key, keyTold } = happened;
  const server = await serveOn(stage, folder);
  const target = { url: server.ready.url, key };
  for (const { ask, reply } of number < keyTold ? [] : told.filter(({ operations }) => operations <= number)) {
    const again = await ask.again(target);
    const same = again.status === 200 && again.said === reply.said;
    must(
      same,
      `${ask.name} said ${reply.said.slice(0, 300)}, and says now ${again.status} ${again.said.slice(0, 300)}`,
    );
    must(again.replayed || !ask.marked, `${ask.name} ran again`);
  }
  must((await server.stop()) === 0, `the service does not end in order, ${loss}`);
  // The service has run on it since, and nothing that was promised may have changed.
  await expectPromises(folder, happened, number);
}
