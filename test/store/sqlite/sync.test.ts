/** The two places where the log is synced: no hold waits for a slow disk twice, and both report a fault of the disk. */
import { expect, test } from "bun:test";
import { LogSync } from "../../../src/store/sqlite/sync.ts";
import { FakeClock } from "../../std/fake-clock.ts";

class Disk {
  readonly clock = new FakeClock();
  readonly syncs: string[] = [];
  ms = 0.3;
  error: Error | null = null;
  private ends: (() => void)[] = [];

  now(): void {
    this.syncs.push("now");
    this.clock.advance(this.ms);
    if (this.error) throw this.error;
  }

  apart(_log: number, done: (error: Error | null) => void): void {
    this.syncs.push("apart");
    const { error } = this;
    this.ends.push(() => done(error));
  }

  /** Ends what runs apart. */
  end(): void {
    this.clock.advance(this.ms);
    for (const end of this.ends.splice(0)) end();
  }
}

/** The places where the next `count` syncs ran. */
function places(disk: Disk, syncs: LogSync, count: number): string[] {
  disk.syncs.length = 0;
  let ended = 0;
  for (let n = 0; n < count; n += 1) {
    syncs.sync(1, () => {
      ended += 1;
    });
    disk.end();
  }
  expect(ended).toBe(count);
  return [...disk.syncs];
}

const quick = (places: readonly string[]) => places.filter((place) => place === "now").length;

test("a quick disk is waited for, once it has shown that it is quick", () => {
  const disk = new Disk();
  const syncs = new LogSync(disk);
  const first = places(disk, syncs, 100);
  expect(first.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => "apart"));
  expect(new Set(first.slice(50))).toEqual(new Set(["now"]));
});

test("after a stall some syncs run beside the commits, then the disk is waited for again", () => {
  const disk = new Disk();
  const syncs = new LogSync(disk);
  places(disk, syncs, 100);
  disk.ms = 200;
  expect(places(disk, syncs, 2)).toEqual(["now", "apart"]);
  disk.ms = 0.3;
  const later = places(disk, syncs, 100);
  expect([later[0], later.at(-1)]).toEqual(["apart", "now"]);
  expect(quick(later)).toBeGreaterThan(40);
});

test("a disk that stays slow is waited for a few times at most", () => {
  const disk = new Disk();
  const syncs = new LogSync(disk);
  places(disk, syncs, 100);
  disk.ms = 5;
  expect(quick(places(disk, syncs, 1_000))).toBeLessThan(4);
});

test("a sync that fails is told, on either way", () => {
  const disk = new Disk();
  const syncs = new LogSync(disk);
  const errors: (Error | null)[] = [];
  disk.error = new Error("EIO");
  for (let n = 0; n < 50; n += 1) {
    syncs.sync(1, (error) => errors.push(error));
    disk.end();
  }
  expect([disk.syncs[0], disk.syncs.at(-1)]).toEqual(["apart", "now"]);
  expect(errors).toEqual(Array.from({ length: 50 }, () => disk.error));
});
