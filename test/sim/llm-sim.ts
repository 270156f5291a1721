/** Runs histories of language models by number, and counts how they ended. */
import { LlmHistory } from "./llm-history.ts";
import { LlmWorld } from "./llm-world.ts";
import { Counts, traced } from "./trace.ts";

/** Things that happen in one history, before everybody is let through to the end. */
const ACTIONS = 160;
const NODES = 2;

/** Runs one history; the error of a broken one has its whole trace. */
export async function runLlmHistory(number: number): Promise<LlmHistory> {
  const world = await LlmWorld.open(NODES);
  const history = new LlmHistory(world, `llm history ${number}`, ACTIONS);
  try {
    return await traced(history, `llm ${number}`);
  } finally {
    for (const node of world.nodes) node.kill();
    await world.store.close();
  }
}

/** What histories must have met, or they prove little. */
const EXPECTED = [
  ...["completed", "incomplete", "failed", "replayed", "auth_unavailable", "billing_unavailable"],
  ...["upstream_unavailable", "upstream_rejected", "invalid_upstream_response", "submission_outcome_unknown"],
  ...["idempotency_conflict", "idempotency_replay_terminal"],
]
  .map((name) => `live ${name}`)
  .concat(
    ...["accepted", "completed", "incomplete", "failed", "replayed", "idempotency_conflict", "billing_unavailable"].map(
      (name) => `job ${name}`,
    ),
    ...["job put back", "job submission_outcome_unknown", "job stream_unavailable", "owner ended"],
  );

export class LlmOutcomes extends Counts {
  constructor() {
    super(EXPECTED);
  }

  add({ trace, world }: LlmHistory): void {
    for (const line of trace) {
      const [, kind, outcome, replayed] = /^#\d+ ← (live|job) ([a-z_]+)(, replayed)?/.exec(line) ?? [];
      if (outcome === undefined) continue;
      this.count(`${kind} ${outcome}`);
      if (replayed !== undefined) this.count(`${kind} replayed`);
    }
    this.count("owner ended", world.buried.size);
    this.count("job put back", world.putBack);
  }
}
