/** What observations on sockets came to, after the end of a history. */
import type { ChunkSettlement } from "../../src/robot/store/records.ts";
import { assert } from "../../src/std/assert.ts";
import type { History } from "./history.ts";
import type { Content } from "./link.ts";

/** Errors that end a connection whatever it waits for: what runs is kept for a repeat. */
const ENDS_AT_ONCE = new Set(["too_many_observations", "message_too_large"]);
/** With these nobody knows yet whether it was charged. */
const UNKNOWN = new Set(["observation_outcome_unknown"]);

/**
 * Every client with an open connection got an answer to each observation. What was answered was executed and charged once. What
 * came to nothing for everybody who asked was neither.
 */
export function checkSaid(history: History): void {
  const executions = new Map<number, number>();
  for (const model of history.world.everyModel) {
    for (const { observation } of model.committed) {
      const mark = history.markOf(observation.state);
      executions.set(mark, (executions.get(mark) ?? 0) + 1);
    }
  }
  // What was on its way at a kill was executed too, if it was kept. An id may have been said with several contents: which of them it was
  // is told by its step, or not at all.
  const { said } = history.links;
  const fits = ({ id, expectedStep }: Content, { observation: kept }: ChunkSettlement): boolean =>
    id !== undefined && kept?.observationId === id && (expectedStep ?? kept.step) === kept.step;
  for (const content of said) {
    const kept = history.world.store.untold.find((one) => fits(content, one));
    const isKnown = kept === undefined || said.filter((one) => fits(one, kept)).length === 1;
    const count = (executions.get(content.mark) ?? 0) + Number(kept !== undefined);
    const name = `${content.id} (mark ${content.mark})`;
    assert(!content.said.some(({ outcome }) => outcome === "step") || count === 1, `${name} was executed once`);
    const nothing = content.said.every((said) => cameToNothing(said));
    assert(!nothing || !isKnown || count === 0, `${name} came to nothing, and is charged`);
  }
}

function cameToNothing({ link, outcome }: Content["said"][number]): boolean {
  if (outcome !== undefined) return outcome !== "step" && !UNKNOWN.has(outcome);
  // Its connection was ended by another message's failure: it had not run, then.
  return link.state === "closed" && !ENDS_AT_ONCE.has(link.closing ?? "");
}
