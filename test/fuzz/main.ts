/**
 * `bun test/fuzz/main.ts TARGET SECONDS [SEED]`: searches, prints one line of JSON, and exits with 1 if an input fails. That input is
 * added to the corpus. `TENDON_FUZZ_KEEP=1` adds the inputs that reached something new as well.
 */
import { basename } from "node:path";
import { addFailed, readCorpus, writeCorpus } from "./corpus.ts";
import { search } from "./search.ts";
import { TARGETS } from "./targets.ts";

/** Kept inputs of one target. */
const KEPT_MAX = 48;
const KEPT_BYTES_MAX = 2_048;

const [name = "", seconds = "10", seed = "1"] = process.argv.slice(2);
const target = TARGETS.find((one) => one.name === name);
if (!target) throw new Error(`no target is called '${name}'; there are: ${TARGETS.map((one) => one.name).join(", ")}`);

const { inputs, failed } = await readCorpus(name);
const kept = [...inputs, ...failed];
const { runs, corpus, failure, unseen } = await search(target, kept, { seconds: Number(seconds), seed: Number(seed) });

if (process.env.TENDON_FUZZ_KEEP) {
  // An input that is found early differs most from the seeds.
  const fresh = corpus.slice(target.seeds.length + kept.length).filter((input) => input.length <= KEPT_BYTES_MAX);
  await writeCorpus(name, { inputs: [...inputs, ...fresh].slice(0, KEPT_MAX), failed });
}
if (failure) await addFailed(name, failure.input);
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
