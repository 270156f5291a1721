/**
 * The measured process of bench/weights.ts, `bun bench/weights-child.ts BUNDLE REPLICAS DIGESTS`. It verifies a bundle as a start does,
 * with the digests that an earlier one kept in the file DIGESTS, loads it on the CPU, and prints one JSON object.
 */
import { readFile } from "node:fs/promises";
import { readBundle } from "../src/bundle/read.ts";
import { LOAD_MS_MAX } from "../src/engine/engine.ts";
import { openEngine } from "../src/engine/native.ts";
import { keepDigests, recallDigests } from "../src/std/file-digest.ts";
import { Problem } from "../src/std/problem.ts";
import { report } from "./child.ts";

async function main(dir: string, replicas: number, digests: string): Promise<object | Problem> {
  const begun = performance.now();
  await recallDigests(digests);
  const bundle = await readBundle(dir);
  if (bundle instanceof Problem) return bundle;
  const verified = performance.now();
  await keepDigests(digests);
  const engine = await openEngine({ decodeThreads: 1 });
  if (engine instanceof Problem) return engine;
  // The engine's callback does not keep the process alive while a model loads.
  const alive = setTimeout(() => undefined, LOAD_MS_MAX);
  const opened = performance.now();
  const model = await engine.load({ bundle, device: "cpu", replicas, threads: undefined, slots: 1 });
  if (model instanceof Problem) return model;
  const loaded = performance.now();
  Bun.gc(true);
  const [status, io] = await Promise.all(["status", "io"].map((name) => readFile(`/proc/self/${name}`, "utf8")));
  const kib = (name: string) => 1024 * numberIn(status, name);
  const figures = {
    verify_ms: verified - begun,
    load_ms: loaded - opened,
    rss_bytes: kib("VmRSS"),
    own_bytes: kib("RssAnon"),
    peak_bytes: kib("VmHWM"),
    read_chars: numberIn(io, "rchar"),
    disk_bytes: numberIn(io, "read_bytes"),
    difference: Math.max(...model.parity),
  };
  await engine.close();
  clearTimeout(alive);
  return figures;
}

function numberIn(text = "", name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1]);
}

const [dir = "", replicas = "1", digests = ""] = process.argv.slice(2);
await report(() => main(dir, Number(replicas), digests));
