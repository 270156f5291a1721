/**
 * What `.ci/run` says of speed: which figures are worse than at BASE. A warning and no failure, because a machine that runs the checks
 * is shared; `npm run prove ab BASE` on a quiet one tells whether it is true.
 */
import { print } from "../../src/cli/frame/print.ts";
import { origin } from "../../src/measure/origin.ts";
import { Problem } from "../../src/std/problem.ts";
import { type Compared, compare, isWorse } from "../ab.ts";
import { ownTree, treeOf } from "./tree.ts";

/** The commit whose speed is to be kept. Moved to a later one when that is faster, or when being slower was decided. */
const BASE = "4245eeb";

/** Half the time of the proof. */
const PLAN = { rounds: 3, turns: 10, warmup: 2, chunks: "full" } as const;

function told({ question, figure, base, changed, ratio, low, high }: Compared): string {
  const percent = ((ratio - 1) * 100).toFixed(0);
  const interval = `${low.toFixed(3)} to ${high.toFixed(3)}`;
  const ms = `${base.toFixed(2)} to ${changed.toFixed(2)} ms`;
  return `warning: ${question}, ${figure}: ${percent} % worse than at ${BASE} (${ms}, 95 % interval of the ratio ${interval})`;
}

async function warnings(): Promise<string[] | Problem> {
  const base = await treeOf(BASE);
  if (base instanceof Problem) return base;
  const compared = await compare(base, await ownTree((await origin()).commit), PLAN);
  return compared instanceof Problem ? compared : compared.filter(isWorse).map(told);
}

const found = await warnings();
if (found instanceof Problem) await print(`speed was not compared with ${BASE}: ${found.message}`);
else await print(found.length > 0 ? found.join("\n") : `no figure is worse than at ${BASE} by more than 5 % and noise`);
process.exit(0);
