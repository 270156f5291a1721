/** A provider and a service in front of it, each in a fresh process, with an id that streams from the provider and one that does not. */
import { join } from "node:path";
import { childEnvironment } from "../../src/config/environment.ts";
import { type Child, firstLine, startChild } from "../../src/measure/child.ts";
import { Problem } from "../../src/std/problem.ts";
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
  const provider = Bun.spawn([process.execPath, join(import.meta.dir, "provider-child.ts")], {
    stdin: "pipe",
    stdout: "pipe",
    env: childEnvironment({}),
  });
  const stop = async () => {
    provider.kill();
    await provider.exited;
  };
  const url = await firstLine(provider.stdout);
  if (url === undefined) {
    await stop();
    return new Problem("the provider's process printed no address");
  }
  const configuration = [table(PLAIN_ID, url, false), table(STREAM_ID, url, true)].join("\n");
  const child = await startChild({ device: "echo", configuration });
  if (child instanceof Problem) {
    await stop();
    return child;
  }
  return {
    child,
    provider: direct(url),
    providerUrl: url,
    providerPid: provider.pid,
    plain: through(child.service, PLAIN_ID),
    stream: through(child.service, STREAM_ID),
    [Symbol.asyncDispose]: async () => {
      await child.stop();
      await stop();
    },
  };
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
