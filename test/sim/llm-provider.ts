/** A provider whose every step waits for the history, and the calls that it has had. */
import { Fault } from "../../src/llm/provider/fault.ts";
import { type Call, Provider } from "../../src/llm/provider/provider.ts";
import type { Ending } from "../../src/llm/provider/reader.ts";
import type { LlmRequest } from "../../src/llm/request.ts";
import type { LlmUsage } from "../../src/llm/usage.ts";
import { type Clock, sleep } from "../../src/std/clock.ts";
import { providerConfig } from "../llm/stage.ts";
import type { Gates } from "./gates.ts";

/** `piece`: of the answer; the call goes on after it. `hang`: until its time is over. */
export type Step =
  | { readonly kind: "piece" | "hang" }
  | { readonly kind: "answer"; readonly usage: LlmUsage | undefined; readonly full: boolean }
  | { readonly kind: "unavailable" | "rejected" | "invalid" };

/** A call as the provider knows it. */
export interface ProviderCall {
  readonly number: number;
  /** The text of the request. */
  readonly mark: string;
  /** The process that called; of a job it may be another one than its request reached. */
  readonly caller: { readonly killed: boolean };
  /** `open`: it has no end, and if its process was killed, never will. */
  outcome: "open" | "answered" | "unavailable" | "rejected" | "invalid";
}

const CONFIG = providerConfig({
  base_url: "http://127.0.0.1:9/v1",
  protocol: "chat",
  total_seconds: 40,
  job_retry_seconds: 60,
});

/** What the provider says in a call: no two say the same. */
export function answerOf({ number, mark }: Pick<ProviderCall, "number" | "mark">): string {
  return `Answer ${number} to ${mark}.`;
}

export interface Script {
  readonly gates: Gates;
  /** What comes next in a call. */
  readonly next: () => Step;
  /** It is called now. */
  readonly called: (mark: string) => ProviderCall;
}

export class GatedProvider extends Provider {
  constructor(
    private readonly time: Clock,
    private readonly script: Script,
  ) {
    super(CONFIG, undefined, time);
  }

  override async answer({ request, draft, signal, moved }: Call): Promise<Ending | Fault> {
    const { gates, next, called } = this.script;
    const mark = markOf(request);
    const call = called(mark);
    const aborted = new Promise<Step>((resolve) => {
      if (signal.aborted) resolve({ kind: "unavailable" });
      signal.addEventListener("abort", () => resolve({ kind: "unavailable" }), { once: true });
    });
    for (;;) {
      const step = await Promise.race([gates.hold(`a call of ${mark}`, async () => next()), aborted]);
      if (step.kind === "hang") await Promise.race([sleep(this.time, 1_000 * CONFIG.totalSeconds), aborted]);
      if (step.kind === "answer") draft.add("output_text", answerOf(call));
      else if (step.kind === "piece") draft.add("output_text", "... ");
      const fault = step.kind === "answer" || step.kind === "piece" ? moved() : undefined;
      if (fault) {
        call.outcome = "invalid";
        return fault;
      }
      if (step.kind === "piece") continue;
      call.outcome = step.kind === "answer" ? "answered" : step.kind === "hang" ? "unavailable" : step.kind;
      if (step.kind === "answer") return { usage: step.usage, incomplete: step.full ? undefined : "max_output_tokens" };
      return new Fault(step.kind === "hang" ? "unavailable" : step.kind, "the history");
    }
  }
}

function markOf({ input }: LlmRequest): string {
  const [message] = input;
  const [part] = message?.type === "message" ? message.content : [];
  return part?.type === "input_text" ? part.text : "";
}
