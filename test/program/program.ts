/**
 * The program as its user has it: a child process, from source or, with TENDON_TEST_PROGRAM=FILE, the executable copied
 * alone into an empty folder. Each has an empty HOME.
 */
import { Database } from "bun:sqlite";
import { chmod, copyFile, link, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ledgerCheck } from "../../src/charge/store/ledger.ts";
import { type ActionChunk, chunkOf as chunkIn } from "../../src/client/chunk.ts";
import { requestBody } from "../../src/client/request.ts";
import { LIMITS } from "../../src/limits.ts";
import { firstLine } from "../../src/measure/child.ts";
import { present } from "../../src/std/assert.ts";
import { onSqlite } from "../../src/store/sqlite/statements.ts";
import { drive } from "../../src/store/steps.ts";

const ROOT = resolve(import.meta.dir, "../..");

/** The executable under test; undefined when it is the sources. */
export const EXECUTABLE = process.env.TENDON_TEST_PROGRAM ? resolve(process.env.TENDON_TEST_PROGRAM) : undefined;

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Ready {
  readonly event: string;
  readonly url: string;
  readonly ops_url: string;
  readonly models: string[];
  readonly llm: string[];
  readonly account: string;
  readonly api_key: string;
}

/** An empty folder with an empty HOME in it, and the program beside it. Gone at the end of the test. */
export class Place implements AsyncDisposable {
  private readonly children = new Set<Bun.Subprocess>();

  private constructor(
    readonly dir: string,
    readonly home: string,
    private readonly command: readonly string[],
  ) {}

  static async make(): Promise<Place> {
    const dir = await mkdtemp(join(tmpdir(), "tendon-program-"));
    const home = join(dir, "home");
    await mkdir(home);
    if (EXECUTABLE === undefined) return new Place(dir, home, [process.execPath, join(ROOT, "src/main.ts")]);
    const alone = join(dir, "tendon");
    // A name of the same file where the file system is the same: each copy would take 200 MB.
    await link(EXECUTABLE, alone).catch(() => copyFile(EXECUTABLE, alone));
    await chmod(alone, 0o755);
    return new Place(dir, home, [alone]);
  }

  path(name: string): string {
    return join(this.dir, name);
  }

  /** The program, as words of a shell. */
  get shellWords(): string {
    return this.command.map((word) => `'${word}'`).join(" ");
  }

  private environment(extra: Record<string, string>): Record<string, string> {
    return { PATH: process.env.PATH ?? "", HOME: this.home, TENDON_OPS_ADDR: "127.0.0.1:0", ...extra };
  }

  /** `under`: a command that runs the program, such as a tracer. */
  spawn(
    args: readonly string[],
    env: Record<string, string> = {},
    under: readonly string[] = [],
  ): Bun.Subprocess<"ignore", "pipe", "pipe"> {
    const child = Bun.spawn([...under, ...this.command, ...args], {
      cwd: this.dir,
      env: this.environment(env),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.children.add(child);
    return child;
  }

  /** Runs a command to its end. */
  async run(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    const child = this.spawn(args, env);
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, stdout, stderr };
  }

  /** Runs a command whose standard output is closed before it writes to it. */
  async runUnread(args: readonly string[]): Promise<Ended> {
    const script = 'exec 3>&1; { sh -c \'sleep 0.05; "$@"; echo "code $?" >&3\' - "$@"; } | true';
    const child = Bun.spawn(["sh", "-c", script, "-", ...this.command, ...args], {
      cwd: this.dir,
      env: this.environment({}),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    await child.exited;
    return { code: Number(/code (\d+)/.exec(stdout)?.[1]), stdout: "", stderr };
  }

  /** Starts `serve --dev` on a free port and waits until it is ready. */
  async serve(
    args: readonly string[] = [],
    env: Record<string, string> = {},
    under: readonly string[] = [],
  ): Promise<Server> {
    const child = this.spawn(["serve", "--dev", "--json", "--port", "0", ...args], env, under);
    const line = await firstLine(child.stdout);
    if (line === undefined) throw new Error(`serve ended before it was ready: ${await child.stderr.text()}`);
    return new Server(child, JSON.parse(line));
  }

  /** Whatever a test did to its services, their ledgers are sound afterwards. */
  private async expectSoundLedgers(): Promise<void> {
    for await (const path of new Bun.Glob("**/tendon.sqlite").scan({ cwd: this.dir, absolute: true })) {
      using db = new Database(path, { safeIntegers: true });
      const report = soundness(db);
      if (report !== undefined) throw new Error(`the ledger of ${path} is off: ${report}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.children) {
      if (child.exitCode === null) child.kill("SIGKILL");
      await child.exited;
    }
    await this.expectSoundLedgers();
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** What is off in a ledger; a file that a test has damaged, or that is older than money, tells nothing. */
function soundness(db: Database): string | undefined {
  try {
    return drive(ledgerCheck(), onSqlite(db)).problem;
  } catch {
    return undefined;
  }
}

export class Server {
  constructor(
    readonly child: Bun.Subprocess<"ignore", "pipe", "pipe">,
    readonly ready: Ready,
  ) {}

  post(body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.ready.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.ready.api_key}`, "content-type": "application/json", ...headers },
      body: body as string,
    });
  }

  /** A number of `/metrics`, without labels. */
  async metric(name: string): Promise<number> {
    const metrics = await (await fetch(`${this.ready.ops_url}/metrics`)).text();
    return Number(new RegExp(`^tendon_${name} (\\d+)$`, "m").exec(metrics)?.[1]);
  }

  /** Waits until the engine holds an inference. */
  async busy(): Promise<void> {
    while ((await this.metric("engine_chunks_free")) >= LIMITS.chunksMax) await Bun.sleep(1);
  }

  /** SIGTERM, and its exit code. */
  async stop(): Promise<number> {
    this.child.kill("SIGTERM");
    return await this.child.exited;
  }
}

/** A whole request of three JPEGs for the model that ships. */
export function requestOf(jpegs: readonly Uint8Array[], extra: Record<string, unknown> = {}): string {
  const state = { joint_position: Array(12).fill(0.1), gripper_position: [0.5, 1] };
  const request = { model: "vendorB/molmoact2:yam", instruction: "pick up the red block", frames: jpegs, state };
  return JSON.stringify({ ...requestBody(request), ...extra });
}

/** The action chunk inside a chat completion. */
export async function chunkOf(response: Response): Promise<ActionChunk> {
  return present(chunkIn(await response.json()), "the chunk of the reply");
}

/** One clear message: something is said, and no stack and no source line in it. */
export function isClear(text: string): boolean {
  return text.trim().length > 20 && !/\n\s+at |\bat .*:\d+:\d+|Error:|undefined|\[object/.test(text);
}
