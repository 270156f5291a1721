/**
 * A service in a fresh process, for measurements: the same executable or sources, a new data folder, free ports. It uses one
 * folder of the user: the cache of libraries.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Service } from "../client/http.ts";
import { childEnvironment, ortEnvironment } from "../config/environment.ts";
import { LIMITS } from "../limits.ts";
import { installedManifests } from "../service/bundles.ts";
import { systemClock } from "../std/clock.ts";
import { parseJson, textAt } from "../std/json.ts";
import { Problem } from "../std/problem.ts";
import { pinned, placement } from "./placement.ts";
import { SAMPLE_MODEL } from "./sample/observation.ts";

/** Loading and warming a bundle on a slow core takes a second or two. */
const READY_MS_MAX = 60_000;
const STOP_MS_MAX = 10_000;

export interface ChildOptions {
  /** The command before `serve`: this executable by default. */
  readonly program?: readonly string[];
  /** The model's device. */
  readonly device: string;
  /** The sample's by default. */
  readonly model?: string | undefined;
  /** A full-size model takes longer to load than the sample's. */
  readonly readyMsMax?: number;
  readonly modelsDir?: string | undefined;
  /** Further tables of its tendon.toml. */
  readonly configuration?: string;
  /** Added to the child's environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Receives what the child sends with `process.send`; only a program made for it does. */
  readonly onMessage?: (message: unknown) => void;
}

export interface Child {
  readonly service: Service;
  /** Its operations listener. */
  readonly opsUrl: string;
  /** Its data folder, gone after `stop`. */
  readonly dataDir: string;
  /** Time from the start of the process to its ready line. */
  readonly readyMs: number;
  readonly pid: number;
  /** To the child's `process.on("message")`; only with `onMessage`. */
  send(message: unknown): void;
  /** `problem`, or, when the process has exited by itself, why it did: that is then the cause. */
  explain(problem: Problem): Promise<Problem>;
  /** Ends the process and removes its data. */
  stop(): Promise<void>;
}

/** This program as a command: the compiled executable alone, or Bun with the entry file. */
export function ownProgram(): string[] {
  return import.meta.path.startsWith("/$bunfs/")
    ? [process.execPath]
    : [process.execPath, join(import.meta.dir, "../main.ts")];
}

/** Starts `serve --dev` and waits for its ready line. */
export async function startChild(options: ChildOptions): Promise<Child | Problem> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-bench-"));
  const config = join(folder, "tendon.toml");
  const dataDir = join(folder, "data");
  const { model = SAMPLE_MODEL, modelsDir, device } = options;
  const installed = modelsDir === undefined ? [] : await installedManifests(modelsDir);
  if (installed instanceof Problem) return installed;
  const ids = installed.map(({ id }) => id);
  if (modelsDir !== undefined && !ids.includes(model))
    return new Problem(
      `${modelsDir} has no bundle of ${model}, but of ${ids.join(", ")}; chunk and http measure any of them with --model ID`,
    );
  // The dev account must not run out of credit in a long measurement, nor of work that is refused. An operator's own id has no price by itself.
  const rates = 'prompt_usd_per_mtok = "0"\ncached_prompt_usd_per_mtok = "0"\nrow_usd_per_mrow = "0"\n';
  const others = ids.flatMap((id) => (id === model ? [] : [`[robot."${id}"]\n${rates}`]));
  const tables = [`[robot."${model}"]\ndevice = "${device}"\n${rates}`, ...others, options.configuration ?? ""];
  await Bun.write(config, `unpaid_seconds = ${LIMITS.unpaidSecondsMax}\n${tables.join("\n")}`);
  const models = modelsDir === undefined ? [] : ["--models", modelsDir];
  const flags = ["--dev", "--json", "--port", "0", "--data", dataDir, "--config", config, ...models];
  const before = systemClock.monotonicMs();
  const command = [...(options.program ?? ownProgram()), "serve", ...flags];
  const apart = placement();
  const child = Bun.spawn(apart ? pinned(apart.service, command) : command, {
    stdin: "ignore",
    stdout: "pipe",
    stderr: Bun.file(join(folder, "stderr.txt")),
    env: childEnvironment({
      XDG_CONFIG_HOME: join(folder, "config"),
      TENDON_OPS_ADDR: "127.0.0.1:0",
      ...ortEnvironment(),
      ...options.environment,
    }),
    ...(options.onMessage === undefined ? {} : { ipc: options.onMessage }),
  });
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    const cancel = systemClock.after(STOP_MS_MAX, () => child.kill("SIGKILL"));
    await child.exited;
    cancel();
    await rm(folder, { recursive: true, force: true });
  };
  const cancel = systemClock.after(options.readyMsMax ?? READY_MS_MAX, () => child.kill("SIGKILL"));
  const line = await firstLine(child.stdout);
  cancel();
  const readyMs = systemClock.monotonicMs() - before;
  const ready = line === undefined ? undefined : readyOf(line);
  if (ready === undefined) {
    const said = await lastWords(folder);
    await stop();
    return new Problem(`the service that was to be measured did not start: ${said || "it printed no ready line"}`);
  }
  const explain = async (problem: Problem): Promise<Problem> => {
    // The connection breaks a moment before the process is gone.
    const ended = await Promise.race([child.exited.then(() => true), Bun.sleep(500).then(() => false)]);
    if (!ended) return problem;
    const how = child.signalCode ?? `exit code ${child.exitCode}`;
    return new Problem(`the measured service ended by itself (${how}): ${await lastWords(folder)}`);
  };
  return { ...ready, dataDir, readyMs, pid: child.pid, stop, explain, send: (message) => child.send(message) };
}

/** The last line that the service wrote to standard error. */
async function lastWords(folder: string): Promise<string> {
  return (await Bun.file(join(folder, "stderr.txt")).text()).trim().split("\n").at(-1) ?? "";
}

/** The ready line of `serve --dev --json` (contract section 9). */
function readyOf(line: string): Pick<Child, "service" | "opsUrl"> | undefined {
  const event = parseJson(line);
  const [url, opsUrl, apiKey] = [textAt(event, "url"), textAt(event, "ops_url"), textAt(event, "api_key")];
  if (textAt(event, "event") !== "ready" || !url || !opsUrl || !apiKey) return undefined;
  return { service: { url: url.replace(/\/$/, ""), apiKey }, opsUrl };
}

/** The first line of a stream, without its end; undefined when the stream ends before one. */
export async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    let text = "";
    // Read to its end, although only the first line is used: the pipe must not fill up.
    for await (const bytes of stream) {
      if (text.includes("\n")) continue;
      text += decoder.decode(bytes, { stream: true });
      const end = text.indexOf("\n");
      if (end >= 0) resolve(text.slice(0, end));
    }
    resolve(undefined);
  };
  read().catch(() => resolve(undefined));
  return await promise;
}
