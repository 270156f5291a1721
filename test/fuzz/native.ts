/** The fuzz targets written in Rust (`native/fuzz`): how they are built, with which corpus they begin, how one is run. */
import { cp, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { childEnvironment } from "../../src/config/environment.ts";
import { addFailed, readCorpus, writeCorpus } from "./corpus.ts";
import type { Report, Run } from "./run.ts";

const ROOT = resolve(import.meta.dir, "../..");
const NATIVE = join(ROOT, "native");

/** Their names, and where else inputs to begin with are. */
export const NATIVE_TARGETS: Readonly<Record<string, readonly string[]>> = {
  jpeg: ["test/vectors/jpeg"],
  body: [],
  abi: [],
};

/** An input that takes longer has found what hangs: on a busy machine one takes a second at most. */
const INPUT_SECONDS_MAX = 60;
const MEMORY_MB_MAX = 4_096;
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  jpeg: ["-max_len=16384", "-len_control=0"],
  body: ["-max_len=2048", "-len_control=0"],
  abi: ["-max_len=1024", "-len_control=0"],
};

/** libFuzzer is C++, and is built with what it tests. */
export function hasCompiler(): boolean {
  return Bun.which("c++") !== null;
}

/** Builds all of them; what cargo said if it cannot. */
export async function buildNative(): Promise<string | undefined> {
  const cargo = Bun.spawn(
    ["cargo", "build", "--release", "--locked", "--quiet", "--package", "tendon-fuzz", "--features", "link"],
    {
      cwd: NATIVE,
      env: childEnvironment({ RUSTC_WORKSPACE_WRAPPER: join(NATIVE, "fuzz/rustc.sh") }),
      stdout: "ignore",
      stderr: "pipe",
    },
  );
  const said = await cargo.stderr.text();
  return (await cargo.exited) === 0 ? undefined : said;
}

/** Replays the corpus, then searches. libFuzzer reads folders: the corpus is unpacked into a temporary one. */
export async function runNative({ name, seconds, seed, keep = false }: Run): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-fuzz-"));
  const corpus = await readCorpus(name);
  try {
    const [kept, fresh, merged] = [join(folder, "kept"), join(folder, "fresh"), join(folder, "merged")];
    await Promise.all([kept, fresh, merged].map((path) => mkdir(path)));
    const inputs = [...corpus.inputs, ...corpus.failed];
    await Promise.all(inputs.map((input, index) => Bun.write(join(kept, String(index)), input)));
    const others = (NATIVE_TARGETS[name] ?? []).map((path) => join(ROOT, path));
    const start = (flags: readonly string[], folders: readonly string[]) =>
      Bun.spawn([join(NATIVE, "target/release", `fuzz-${name}`), ...(FLAGS[name] ?? []), ...flags, ...folders], {
        env: childEnvironment({ ASAN_OPTIONS: "detect_leaks=0:abort_on_error=0" }),
        stdout: "ignore",
        stderr: "pipe",
      });
    const bounds = [`-timeout=${INPUT_SECONDS_MAX}`, `-rss_limit_mb=${MEMORY_MB_MAX}`];
    const child = start(
      [
        ...bounds,
        `-max_total_time=${seconds}`,
        `-seed=${seed}`,
        `-artifact_prefix=${folder}/failed-`,
        "-print_final_stats=1",
      ],
      [fresh, kept, ...others],
    );
    const said = await child.stderr.text();
    const good = (await child.exited) === 0;
    const failed = await readAll(folder, (file) => file.startsWith("failed-"));
    for (const input of failed) await addFailed(name, input);
    if (good && keep) {
      // The smallest set of inputs that reaches the same, beside the files that are kept elsewhere.
      for (const other of others) await cp(other, merged, { recursive: true });
      const elsewhere = new Set(await readdir(merged));
      await start(["-set_cover_merge=1", ...bounds], [merged, kept, fresh]).exited;
      await writeCorpus(name, {
        inputs: await readAll(merged, (file) => !elsewhere.has(file)),
        failed: corpus.failed,
      });
    }
    const count = (what: RegExp) => Number(what.exec(said)?.[1] ?? Number.NaN);
    return {
      name: `native ${name}`,
      runs: count(/number_of_executed_units:\s*(\d+)/),
      corpus: (await readdir(fresh)).length,
      unseen: [],
      ...(good
        ? {}
        : { failure: { input: failed.map((input) => input.toBase64()).join(), error: said.slice(-6_000) } }),
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function readAll(folder: string, where: (file: string) => boolean = () => true): Promise<Uint8Array[]> {
  const files = (await readdir(folder)).filter(where);
  return Promise.all(files.map((file) => Bun.file(join(folder, file)).bytes()));
}
