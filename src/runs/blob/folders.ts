/** Folders that are there after a loss of power: made, and synced with the one above, since this process began. */
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";

export class Folders {
  private readonly known = new Map<string, Promise<void>>();

  constructor(private readonly make = makeFolder) {}

  /** Whoever asks while another makes it waits as well: what is put into it would be lost with it. */
  made(path: string): Promise<void> {
    const known = this.known.get(path);
    if (known !== undefined) return known;
    const made = this.make(path);
    this.known.set(path, made);
    made.catch(() => this.known.delete(path));
    return made;
  }

  forget(path: string): void {
    this.known.delete(path);
  }
}

/** Synced also where it is there: the process that made it may have been killed before its sync. */
async function makeFolder(path: string): Promise<void> {
  const highest = (await mkdir(path, { recursive: true, mode: 0o700 })) ?? path;
  for (let made = path; ; made = dirname(made)) {
    await syncFolder(dirname(made));
    if (made.length <= highest.length) return;
  }
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
}
