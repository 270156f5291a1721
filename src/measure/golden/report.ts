/** Compares a bundle with its golden values, and says what came of it: the largest difference of each stage, and the first one that is off. */
import { readFile } from "node:fs/promises";
import { isPlayable } from "../../bundle/golden.ts";
import type { Golden } from "../../bundle/manifest.ts";
import type { Bundle } from "../../bundle/read.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";
import { withEngine } from "../engine.ts";
import { playGolden, type Where } from "./play.ts";
import { type Part, partsOf, STAGES } from "./stages.ts";
import { piecesOf } from "./tokens.ts";

export interface Compared {
  readonly cases: number;
  /** Cases whose cameras are others than the bundle's, or whose instruction is too long for it. */
  readonly leftOut: number;
  /** The largest difference of each stage that has golden values, in the order of the work. */
  readonly stages: readonly Part[];
  /** The first part, in the order of the work, that is off. */
  readonly off: Part | undefined;
}

/** `within` replaces all limits but that of tokens. */
export async function compareGolden(
  bundle: Bundle,
  golden: Golden,
  where: Where,
  within?: number,
): Promise<Compared | Problem> {
  const { manifest, paths } = bundle;
  const numbers = [...golden.cases.keys()].filter((number) =>
    isPlayable(manifest, present(golden.cases[number], "a case")),
  );
  if (numbers.length === 0) {
    return new Problem(
      `none of the ${golden.cases.length} golden cases has pictures of exactly ${manifest.cameras.join(", ")}; import the bundle with a robot file of their cameras`,
    );
  }
  const tokenizer = manifest.tokenizer && present(paths.get(manifest.tokenizer), "the tokenizer");
  const pieces = tokenizer === undefined ? new Map() : piecesOf(await readFile(tokenizer, "utf8"));
  const parts = await withEngine(1, (engine) =>
    playGolden(engine, bundle, golden, numbers, where, (played) => partsOf(played, manifest, pieces)),
  );
  if (parts instanceof Problem) return parts;
  if (parts.length === 0) {
    return new Problem(
      `the instruction of each of ${numbers.length} golden cases is too long for the bundle, expected at most ${manifest.prompt?.tokens_max} tokens; make golden values of a shorter one`,
    );
  }
  const judged = parts.flat().map((one) => (one.limit > 0 ? { ...one, limit: within ?? one.limit } : one));
  const of = STAGES.map((stage) => judged.filter((one) => one.stage === stage)).filter((some) => some.length > 0);
  const stages = of.map((some) => some.reduce((one, other) => (other.size > one.size ? other : one)));
  const off = of.map((some) => some.find(({ size, limit: most }) => size > most)).find(Boolean);
  return { cases: parts.length, leftOut: golden.cases.length - parts.length, stages, off };
}

/** A table for people: a line for each stage. */
export function goldenLines({ cases, leftOut, stages }: Compared): string {
  const left = leftOut === 0 ? "" : `, ${leftOut} left out because their cameras or prompts do not fit the bundle`;
  const lines = stages.map(({ stage, size, limit: most, where, ...one }) => {
    const off = size > most ? "OFF" : "   ";
    const limit = Number.isFinite(most) ? `of ${most.toExponential(1)}` : "not judged";
    return `  ${off} ${stage.padEnd(16)} ${sizeWords(size).padStart(8)} ${limit.padEnd(10)}  ${size === 0 ? "" : `case ${one.case}, ${where}`}`.trimEnd();
  });
  const isJudged = stages.every(({ limit }) => Number.isFinite(limit));
  return [
    `${cases} golden cases${left}; the largest difference of each stage, of what it may be:`,
    ...lines,
    ...(isJudged ? [] : [UNJUDGED]),
  ].join("\n");
}

const UNJUDGED =
  "  not judged: the golden values are of weights or of arithmetic with more bits than this bundle's; verify an import of the checkpoint in float32, or judge by --within";

/** The first stage that is off. */
export function offProblem({ stage, case: number, size, limit, where }: Part): Problem {
  const by =
    size === Number.POSITIVE_INFINITY ? "" : ` by ${sizeWords(size)}, expected at most ${limit.toExponential(1)}`;
  return new Problem(
    `the bundle does not compute what its golden values say: the first stage that is off is ${stage}${by} (case ${number}, ${where}); import it again from the right files`,
  );
}

function sizeWords(size: number): string {
  return size === Number.POSITIVE_INFINITY ? "differ" : size.toExponential(1);
}

/** For programs. */
export function goldenFacts({ cases, leftOut, stages, off }: Compared): object {
  // JSON has no infinite number: null for values that cannot be subtracted, and for a stage that is not judged.
  const finite = (value: number) => (Number.isFinite(value) ? value : null);
  const fact = ({ stage, case: number, size, limit, where }: Part) => ({
    ...{ stage, case: number, where, difference: finite(size), limit: finite(limit) },
  });
  return { cases, left_out: leftOut, stages: stages.map(fact), first_off: off ? fact(off) : null };
}
