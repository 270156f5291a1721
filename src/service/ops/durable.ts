/** Whether the store takes durable writes: asked by writing, at most once a second however many ask. */
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import type { BaseStore } from "../../store/base.ts";
import type { StoreDown } from "../../store/store.ts";

export class DurableWrite {
  private last:
    | { readonly atMs: number; readonly outcome: Promise<StoreDown | undefined>; pending: boolean }
    | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly store: Pick<BaseStore, "probe">,
  ) {}

  /** Why a write is refused. A write that has no outcome yet is shared by all who ask: none is sent behind it. */
  ask(): Promise<StoreDown | undefined> {
    const now = this.clock.monotonicMs();
    const { last } = this;
    if (last && (last.pending || now - last.atMs < LIMITS.storeProbeMs)) return last.outcome;
    const outcome = this.write();
    const asked = { atMs: now, outcome, pending: true };
    this.last = asked;
    const ended = () => {
      asked.pending = false;
    };
    outcome.then(ended, ended);
    return outcome;
  }

  private async write(): Promise<StoreDown | undefined> {
    const kept = await this.store.probe();
    return kept === "kept" ? undefined : kept;
  }
}
