/** A provider and a service in front of it, each in a fresh process, with an id that streams from the provider and one that does not. */
import { Type } from "@sinclair/typebox";
import { type Child, startChild } from "../../src/measure/child.ts";
import { Problem } from "../../src/std/problem.ts";
import { startHelper } from "../child.ts";
import { direct, type Target, through } from "./target.ts";

/** The provider is asked for a plain answer where the client wants one: as a gateway that passes requests through. */
const PLAIN_ID = "llm-a-5.3:superfast";
/** The provider is always asked for a stream, which is what the service does by default. */
export const STREAM_ID = "llm-b-v4-flash:superfast";

export interface Setup extends AsyncDisposable {
  readonly child: Child;
  readonly provider: Target;
  /** Its base address. */
  readonly providerUrl: string;
  readonly providerPid: number;
  readonly plain: Target;
  readonly stream: Target;
}

export async function setUp(): Promise<Setup | Problem> {
  const provider = await startProvider();
  if (provider instanceof Problem) return provider;
  const { url, configuration, helper } = provider;
  const child = await startChild({ device: "echo", configuration });
  if (child instanceof Problem) {
    await helper[Symbol.asyncDispose]();
    return child;
  }
  return {
    child,
    provider: direct(url),
    providerUrl: url,
    providerPid: helper.pid,
    plain: through(child.service, PLAIN_ID),
    stream: through(child.service, STREAM_ID),
    [Symbol.asyncDispose]: async () => {
      await child.stop();
      await helper[Symbol.asyncDispose]();
    },
  };
}

/** Its base address, and the tables of tendon.toml for it. */
export async function startProvider() {
  const helper = startHelper("llm/provider-child.ts");
  const url = await helper.ask("address", Type.String());
  if (url instanceof Problem) return url;
  return { helper, url, configuration: [table(PLAIN_ID, url, false), table(STREAM_ID, url, true)].join("\n") };
}

/** Prices of zero: the account must not run out of credit in a long measurement. The ledger does all of its work. */
function table(id: string, url: string, stream: boolean): string {
  return [
    `[llm."${id}"]`,
    `base_url = "${url}"`,
    'protocol = "chat"',
    'model = "m"',
    `stream = ${stream}`,
    'input_usd_per_mtok = "0"',
    'cached_input_usd_per_mtok = "0"',
    'output_usd_per_mtok = "0"',
    "",
  ].join("\n");
}
