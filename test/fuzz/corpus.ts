/**
 * The kept inputs of a fuzz target, in `corpus/NAME`: one input a line, in base64. The word `failed` behind an input says that it once
 * failed; such an input stays when a corpus is minimised. To add an input by hand: `base64 -w0 FILE >> corpus/NAME; echo >> corpus/NAME`.
 * To read the input on line 3: `sed -n 3p corpus/NAME | cut -d' ' -f1 | base64 -d`.
 */
import { join } from "node:path";

export interface Corpus {
  readonly inputs: readonly Uint8Array[];
  /** Inputs that once failed. */
  readonly failed: readonly Uint8Array[];
}

const fileOf = (name: string) => join(import.meta.dir, "corpus", name);

/** Without a file: no inputs. */
export async function readCorpus(name: string): Promise<Corpus> {
  const file = Bun.file(fileOf(name));
  const text = (await file.exists()) ? await file.text() : "";
  const lines = text
    .split("\n")
    .slice(0, -1)
    .map((line) => line.split(" "));
  const those = (failed: boolean) =>
    lines.filter(([, word]) => (word === "failed") === failed).map(([input = ""]) => Uint8Array.fromBase64(input));
  return { inputs: those(false), failed: those(true) };
}

export async function writeCorpus(name: string, { inputs, failed }: Corpus): Promise<void> {
  const lines = [...inputs.map((input) => input.toBase64()), ...failed.map((input) => `${input.toBase64()} failed`)];
  await Bun.write(
    fileOf(name),
    [...new Set(lines)]
      .toSorted()
      .map((line) => `${line}\n`)
      .join(""),
  );
}

/** Adds an input that failed. */
export async function addFailed(name: string, input: Uint8Array): Promise<void> {
  const { inputs, failed } = await readCorpus(name);
  await writeCorpus(name, { inputs, failed: [...failed, input] });
}
