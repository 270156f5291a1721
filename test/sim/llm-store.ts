/** The store of responses as a database behind a network is: what it is asked for is done late, twice, or without an answer. */
import type { LlmStore } from "../../src/llm/store/llm.ts";
import { StoreDown } from "../../src/store/store.ts";
import { type Gates, inBackground } from "./gates.ts";

/**
 * - `refused`: nothing is done.
 * - `lost`: it is done, and nobody hears of it.
 * - `late`: it is done when its caller has given up.
 * - `twice`: the answer was lost, and the second try has one.
 * - `slow`: it is done later. `kept`: it is done, and the answer comes later.
 */
export const STORE_FAULTS = ["refused", "lost", "late", "twice", "slow", "kept"] as const;
export type StoreFault = (typeof STORE_FAULTS)[number];

interface Faulty {
  /** The gates of the process that asks. */
  readonly gates: Gates;
  /** The gates of the database: what is on its way there is done, whatever becomes of the process. */
  readonly late: Gates;
  /** What happens to the next operation. */
  readonly fault: (operation: string) => StoreFault | undefined;
}

type Operation = (argument: unknown) => Promise<unknown>;

export function faultyStore(inner: LlmStore, faulty: Faulty): LlmStore {
  const operations = Object.entries(inner).map(([name, work]) => {
    // Each takes one argument, or none.
    const operation = work as Operation;
    return [name, (argument: unknown) => asked(name, () => operation(argument), faulty)];
  });
  return Object.fromEntries(operations) as LlmStore;
}

async function asked(name: string, work: () => Promise<unknown>, { gates, late, fault }: Faulty): Promise<unknown> {
  switch (fault(name)) {
    case "refused":
      return new StoreDown("refused by the history");
    case "lost":
      await work();
      return new StoreDown("no answer", true);
    case "late":
      inBackground(late.hold(`${name} that is late`, work));
      return new StoreDown("no answer yet", true);
    case "twice":
      await work();
      return await work();
    case "slow":
      return await gates.hold(name, work);
    case "kept": {
      const outcome = await work();
      return await gates.hold(`the answer to ${name}`, async () => outcome);
    }
    default:
      return await work();
  }
}
