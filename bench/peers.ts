/**
 * How does the service stand beside what robots and language models are served with otherwise?
 *
 * Robot servers in the form of openpi's and of MolmoAct2's example, and gateways to language models run together. They have the same
 * frames, state, shape of the rows and provider. Fresh processes in each round, turns in alternating order. Each robot is a separate
 * process with the client library that is usual there. The full size installs the peers (peers/install.ts); the small size takes those
 * that are there. Ours keeps its ledger on disk (SQLite), the others keep none.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { drawnScenes } from "../src/measure/sample/scenes.ts";
import { Problem } from "../src/std/problem.ts";
import { reportsOf } from "./child.ts";
import { type CallPlan, callContenders, callFigures, GATEWAYS, type GatewayName } from "./peers/gateways.ts";
import { installAll, isInstalled, pythonOf, SET_NAMES, type SetName } from "./peers/install.ts";
import { BUNDLE, type Drive, robotContenders, robotFigures, THREADS } from "./peers/robots.ts";
import { type Figure, judged, type Outcome, type Proof } from "./proof.ts";
import { type Compared, inTurns, type Plan } from "./turns.ts";

interface Sizes {
  readonly robots: readonly (Plan & Drive)[];
  readonly calls: Plan & CallPlan;
}

const SMALL: Sizes = {
  robots: [
    { model: "none", rounds: 1, turns: 1, warmup: 1, robots: 2, alone: 3, crowd: 2 },
    { model: "bundle", rounds: 1, turns: 1, warmup: 1, robots: 1, alone: 2, crowd: 0 },
  ],
  calls: { rounds: 1, turns: 1, warmup: 1, calls: 5, firsts: 2, burst: 20, streams: 4 },
};
const FULL: Sizes = {
  robots: [
    { model: "none", rounds: 5, turns: 10, warmup: 4, robots: 8, alone: 30, crowd: 15 },
    { model: "bundle", rounds: 5, turns: 8, warmup: 2, robots: 1, alone: 20, crowd: 0 },
  ],
  calls: { rounds: 5, turns: 8, warmup: 4, calls: 50, firsts: 20, burst: 500, streams: 100 },
};
const SCENES = 4;

const WINDOW = [
  "Window of a robot: from handing the ready message to its client library until the rows are read. Outside: the camera, encoding its",
  "JPEG for those that take JPEG, decoding it to pixels for openpi, packing the message; TLS and a network. Closed loop: a robot waits",
  "for its rows. openpi's form: raw pixels, resize with pad to 224, floats; /act: JPEG, Pillow, resize to 112, floats; both then answer",
  `zeros. The same bundle: ONNX Runtime on ${THREADS} thread here and there. Clients, servers and provider share the cores.`,
  "Window of a call: from fetch to the last byte, or to the first token. Gateways are asked with chat completions, tendon with responses.",
];

export const peers: Proof = {
  name: "peers",
  question: "How does the service stand beside openpi's server, /act and the gateways to language models?",
  async run(size) {
    const missing = size === "full" ? await installAll() : new Map<SetName, Problem>();
    return await compare(size === "full" ? FULL : SMALL, missing);
  },
};

/** `missing`: why sets could not be installed. */
async function compare(sizes: Sizes, missing: ReadonlyMap<SetName, Problem>): Promise<Outcome | Problem> {
  const installed: SetName[] = [];
  for (const name of SET_NAMES) if (await isInstalled(name)) installed.push(name);
  const absent = SET_NAMES.filter((name) => !installed.includes(name)).map(
    (name) => `${name}: not installed${reasonOf(missing.get(name))}; run: npm run prove peers`,
  );
  const checked = installed.includes("robots") ? await checkedBundle() : [];
  if (checked instanceof Problem) return checked;
  const robots = await compareRobots(sizes.robots, installed.includes("robots"));
  if (robots instanceof Problem) return robots;
  const gateways = installed.filter((name): name is GatewayName => name in GATEWAYS);
  const calls = await inTurns(() => callContenders(sizes.calls, gateways), sizes.calls);
  if (calls instanceof Problem) return calls;
  const called = callFigures(calls.rounds);
  const rows = [...checked, ...robots.rows, ...called.figures];
  const failures = [...absent, ...robots.failures, ...failuresOf(calls)];
  const above = [...WINDOW, `${availableParallelism()} cores.`, "", ...robots.tables, called.table].join("\n");
  const below = failures.length === 0 ? "" : `\nNot compared:\n${failures.join("\n")}\n`;
  const outcome = judged(rows, { above: `${above}\n`, below });
  // What could not be compared has kept no limit.
  return failures.length === 0 ? outcome : { ...outcome, pass: false };
}

async function compareRobots(plans: Sizes["robots"], peers: boolean) {
  const scenes = await drawnScenes(SCENES);
  if (scenes instanceof Problem) return scenes;
  const folder = await mkdtemp(join(tmpdir(), "tendon-peers-"));
  try {
    const folders: string[] = [];
    for (const [scene, frames] of scenes.entries()) {
      const own = join(folder, String(scene));
      for (const [camera, jpeg] of frames.entries()) await Bun.write(join(own, `${camera}.jpg`), jpeg);
      folders.push(own);
    }
    const rows: Figure[] = [];
    const tables: string[] = [];
    const failures: string[] = [];
    for (const plan of plans) {
      const compared = await inTurns(async () => robotContenders(plan, folders, peers), plan);
      if (compared instanceof Problem) return compared;
      const shown = robotFigures(compared.rounds, plan);
      rows.push(...shown.figures);
      tables.push(shown.table);
      failures.push(...failuresOf(compared));
    }
    return { rows, tables, failures };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const Check = Type.Object({ greatest: Type.Number(), tolerance: Type.Number() });

/** Whether the peers' Python computes the bundle: otherwise its times would be those of something else. */
async function checkedBundle(): Promise<Figure[] | Problem> {
  const words = [pythonOf("robots"), join(import.meta.dir, "peers/robots.py"), "check", BUNDLE];
  const environment = { PYTHONDONTWRITEBYTECODE: "1" };
  const reports = await reportsOf({ name: "robots.py check", words, environment }, Check);
  if (reports instanceof Problem) return reports;
  return reports.map(({ greatest, tolerance }) => ({
    measure: "the same bundle: rows of the peers' policy, greatest difference from the parity vector",
    value: greatest,
    unit: "1",
    limit: tolerance,
  }));
}

function failuresOf({ failed }: Compared<unknown>): string[] {
  return [...failed].map(([name, problem]) => `${name}: ${problem.message}`);
}

function reasonOf(problem: Problem | undefined): string {
  return problem === undefined ? "" : ` (${problem.message})`;
}
