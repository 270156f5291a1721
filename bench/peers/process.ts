/** A process beside the driver: a peer's server, or a robot that drives one. */
import { childEnvironment } from "../../src/config/environment.ts";
import { Problem } from "../../src/std/problem.ts";

const LAST_WORDS_MAX = 2_000;
const LINE_MS_MAX = 120_000;
/** With PATH all that a peer sees of the environment: it is somebody else's program. */
const FIXED = { PYTHONDONTWRITEBYTECODE: "1", ORT_DISABLE_TELEMETRY: "1" } as const;

interface Options {
  readonly environment?: Readonly<Record<string, string>>;
  /** The program's output is ignored. */
  readonly silent?: boolean;
}

export class PeerProcess {
  private lastWords = "";

  /** `name` is for problems. */
  private constructor(
    private readonly name: string,
    private readonly child: Bun.Subprocess<"pipe", "pipe" | "ignore", "pipe">,
    private readonly lines: AsyncGenerator<string, undefined>,
  ) {}

  static start(name: string, words: readonly string[], { environment = {}, silent = false }: Options = {}) {
    const child = Bun.spawn([...words], {
      stdin: "pipe",
      stdout: silent ? "ignore" : "pipe",
      stderr: "pipe",
      env: { PATH: childEnvironment({}).PATH ?? "", ...FIXED, ...environment },
    });
    const peer = new PeerProcess(name, child, linesOf(child.stdout));
    // Does not reject: a stream that breaks has no more words.
    peer.listen(child.stderr).catch(() => undefined);
    return peer;
  }

  get pid(): number {
    return this.child.pid;
  }

  /** The next line that it prints. */
  async line(): Promise<string | Problem> {
    const timer = setTimeout(() => this.child.kill("SIGKILL"), LINE_MS_MAX);
    const { value } = await this.lines.next();
    clearTimeout(timer);
    return value ?? this.ended();
  }

  /** Writes a line and waits for one. */
  async ask(line: string): Promise<string | Problem> {
    try {
      this.child.stdin.write(`${line}\n`);
      await this.child.stdin.flush();
    } catch {
      return await this.ended();
    }
    return await this.line();
  }

  /** False as soon as it is known to have ended. */
  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Waits for its end: how it was, and the last line that it wrote to standard error. */
  async ended(): Promise<Problem> {
    await this.child.exited;
    const how = this.child.signalCode ?? `exit code ${this.child.exitCode}`;
    return new Problem(`${this.name} ended with ${how}: ${this.lastWords.trim().split("\n").at(-1) ?? ""}`);
  }

  /** It has nothing to keep. */
  async stop(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.child.exited;
  }

  private async listen(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      this.lastWords = (this.lastWords + decoder.decode(bytes, { stream: true })).slice(-LAST_WORDS_MAX);
    }
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array> | undefined): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of stream ?? []) {
    text += decoder.decode(bytes, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
  return undefined;
}
