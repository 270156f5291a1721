/** What the language models work with: the parts of the running service that they need. */
import type { Charges } from "../charge/charges.ts";
import type { Unpaid } from "../charge/unpaid.ts";
import type { Drills } from "../drill.ts";
import type { Failure } from "../std/failure.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import type { Counter } from "../std/metrics.ts";
import type { Permits } from "../std/quota.ts";
import type { SeenClock } from "../std/seen-clock.ts";
import type { ResponseText } from "./command.ts";
import type { LlmId } from "./models.ts";
import type { Provider } from "./provider/provider.ts";
import type { LlmStore } from "./store/llm.ts";
import type { Known } from "./store/records.ts";
import type { Watchers } from "./watchers.ts";

/** A live response, for further requests with its key. */
export interface RunningResponse {
  readonly digest: Uint8Array;
  /** Whether it has the key, once that is recorded. */
  readonly hasKey: Promise<boolean>;
  readonly ended: Promise<ResponseText | Failure | Known>;
}

export interface LlmDeps {
  readonly clock: SeenClock;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  readonly drills: Drills;
  readonly charges: Charges;
  readonly unpaid: Unpaid;
  readonly store: LlmStore;
  readonly providers: ReadonlyMap<LlmId, Provider>;
  /** This process, as the owner of what it runs. */
  readonly owner: string;
  /** Another process has ended: for the rest of the service. */
  readonly ownerEnded: (owner: string) => Promise<void>;
  /** Permits for live responses. */
  readonly places: Permits;
  /** Permits for streams that read what runs by itself, or has ended. */
  readonly readers: Permits;
  /** Live responses that this process runs, by account and key. */
  readonly running: Map<string, RunningResponse>;
  readonly watchers: Watchers;
  /** Called when there is a new job. */
  readonly kick: () => void;
  /** Calls to providers, by the model's id and how they ended. */
  readonly calls: Pick<Counter<"model" | "outcome">, "inc">;
  /** Responses whose provider reported no usage. */
  readonly estimates: Pick<Counter<"model">, "inc">;
}
