/** The calls of a conversation: those of a turn of the model, then their outputs, then whatever comes next. Providers want it so. */
import type { Reading } from "./fields.ts";
import type { InputItem } from "./request.ts";

/** Its own words and thoughts may stand between the calls of a turn. */
export function checkTurns(reading: Reading, input: readonly InputItem[]): void {
  /** The calls of the turn that have no output yet, by their ids, with their places. */
  const waiting = new Map<string, number>();
  let answered = false;
  const closed = () => {
    const [place] = waiting.values();
    if (place === undefined) return;
    const rule = "after the calls of a turn comes a function_call_output for each, before anything else";
    reading.bad(`input[${place}]`, `this call has no output directly behind its turn; ${rule}`);
  };
  for (const [index, item] of input.entries()) {
    if (item.type === "function_call_output") {
      answered = true;
      if (waiting.delete(item.call_id)) continue;
      reading.bad(`input[${index}].call_id`, "no call with this id, which has no output yet, is in the turn before it");
    } else {
      if (answered || (item.type === "message" && item.role !== "assistant")) closed();
      answered = false;
      if (item.type !== "function_call") continue;
      if (waiting.has(item.call_id)) reading.bad(`input[${index}].call_id`, "another call of this turn has this id");
      waiting.set(item.call_id, index);
    }
  }
  closed();
}
