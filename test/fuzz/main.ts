/**
 * `bun test/fuzz/main.ts TARGET SECONDS [SEED]`: searches, prints one line of JSON, and exits with 1 if an input fails; that input is
 * written beside the kept ones. `TENDON_FUZZ_KEEP=1` writes the inputs that reached something new as well.
 */
import { readdir } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { search } from "./search.ts";
import { TARGETS } from "./targets.ts";

const CORPUS = resolve(import.meta.dir, "corpus");
/** Kept inputs of one target. */
const KEPT_MAX = 48;
const KEPT_BYTES_MAX = 2_048;

const [name = "", seconds = "10", seed = "1"] = process.argv.slice(2);
const target = TARGETS.find((one) => one.name === name);
if (!target) throw new Error(`no target is called '${name}'; there are: ${TARGETS.map((one) => one.name).join(", ")}`);

const folder = join(CORPUS, name);
const files = await readdir(folder).catch(() => []);
const kept = await Promise.all(files.toSorted().map((file) => Bun.file(join(folder, file)).bytes()));
const { runs, corpus, failure, unseen } = await search(target, kept, { seconds: Number(seconds), seed: Number(seed) });

const nameOf = (input: Uint8Array) => new Bun.CryptoHasher("sha256").update(input).digest("hex").slice(0, 16);
if (process.env.TENDON_FUZZ_KEEP) {
  // What is found first is what differs most from the seeds.
  const fresh = corpus.slice(target.seeds.length).filter((input) => input.length <= KEPT_BYTES_MAX);
  for (const input of fresh.slice(0, KEPT_MAX)) await Bun.write(join(folder, nameOf(input)), input);
}
if (failure) await Bun.write(join(folder, `failed-${nameOf(failure.input)}`), failure.input);
const said = failure && {
  input: Buffer.from(failure.input).toString("latin1"),
  error: failure.error instanceof Error ? (failure.error.stack ?? failure.error.message) : String(failure.error),
};
const line = {
  name,
  runs,
  corpus: corpus.length,
  unseen: unseen.map((file) => basename(file)),
  ...(said && { failure: said }),
};
await Bun.write(Bun.stdout, `${JSON.stringify(line)}\n`);
process.exit(failure ? 1 : 0);
