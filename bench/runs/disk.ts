/** What the disk and one core can do with bytes that lie in memory: `dd` with fsync, then SHA-256, file by file. */
import { join } from "node:path";
import { Problem } from "../../src/std/problem.ts";

/** Of one file after the other. */
export interface PlainSeconds {
  readonly written: number;
  readonly hashed: number;
}

const DIGESTS = {
  sha256sum: (path: string) => ["sha256sum", path],
  openssl: (path: string) => ["openssl", "dgst", "-sha256", path],
} as const;
export type Digest = keyof typeof DIGESTS;

/** The faster one that is here, by one look at the file. */
export async function fasterDigest(path: string): Promise<Digest | Problem> {
  const found: { name: Digest; seconds: number }[] = [];
  for (const name of ["sha256sum", "openssl"] as const) {
    if (Bun.which(name) === null) continue;
    // The first look brings the program and the file into memory.
    await timed(DIGESTS[name](path));
    const seconds = await timed(DIGESTS[name](path));
    if (!(seconds instanceof Problem)) found.push({ name, seconds });
  }
  const [first] = found.sort((one, other) => one.seconds - other.seconds);
  return first?.name ?? new Problem("neither sha256sum nor openssl is here");
}

/** Into new files, as an upload goes into new files: memory that is used for the first time is slow on a virtual machine. */
export async function plainSeconds(
  source: string,
  folder: string,
  count: number,
  digest: Digest,
): Promise<PlainSeconds | Problem> {
  let [written, hashed] = [0, 0];
  for (let at = 0; at < count; at += 1) {
    const path = join(folder, `plain-${at}`);
    const write = await timed(["dd", `if=${source}`, `of=${path}`, "bs=1M", "conv=fsync"]);
    if (write instanceof Problem) return write;
    const hash = await timed(DIGESTS[digest](path));
    if (hash instanceof Problem) return hash;
    written += write;
    hashed += hash;
  }
  return { written, hashed };
}

async function timed(words: readonly string[]): Promise<number | Problem> {
  const before = performance.now();
  const child = Bun.spawn([...words], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  const code = await child.exited;
  if (code !== 0) return new Problem(`${words.join(" ")} ended with ${code}`);
  return (performance.now() - before) / 1000;
}
