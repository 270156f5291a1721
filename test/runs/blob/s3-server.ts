/** A real S3 server for tests, versitygw: its own folder, its own port on loopback, gone at the end. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { S3Options } from "../../../src/config/blobs.ts";
import { testRequirement } from "../../../src/config/environment.ts";
import { freePort, type TemporaryFolder, temporaryFolder } from "../../store/temporary.ts";

const REASON =
  "versitygw is not installed (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0); .ci/run installs it";

/** The program that a variable names, that is in PATH, or that `go install` made. */
function found(): string | null {
  const named = process.env.TENDON_TEST_VERSITYGW;
  if (named) return named;
  const path = Bun.which("versitygw");
  if (path !== null || Bun.which("go") === null) return path;
  const go = Bun.spawnSync(["go", "env", "GOPATH"]).stdout.toString().trim();
  return Bun.which(join(go, "bin/versitygw"));
}

const PROGRAM = found();
const absent = PROGRAM === null && testRequirement() === "none";

/** Whether its tests cannot run here, and their title. */
export const S3 = { absent, title: absent ? `S3: skipped, ${REASON}` : "S3" };

const BUCKET = "runs";
const CREDENTIALS = { accessKeyId: "tendon", secretAccessKey: "a-secret-of-tests", sessionToken: undefined };

export class S3Server implements AsyncDisposable {
  private child: Bun.Subprocess | undefined;
  private prefixes = 0;

  private constructor(
    private readonly dir: TemporaryFolder,
    readonly port: number,
  ) {}

  static async start(): Promise<S3Server> {
    if (PROGRAM === null) throw new Error(REASON);
    const dir = await temporaryFolder();
    await mkdir(join(dir.path, "root", BUCKET), { recursive: true });
    await mkdir(join(dir.path, "sidecar"));
    const server = new S3Server(dir, await freePort());
    await server.up();
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  /** What `serve` must be told to use it, beside a prefix of one's own. */
  options(changes: Partial<S3Options> = {}): S3Options {
    this.prefixes += 1;
    return {
      kind: "s3",
      bucket: BUCKET,
      prefix: `test/${this.prefixes}`,
      endpoint: this.endpoint,
      region: "us-east-1",
      pathStyle: true,
      credentials: CREDENTIALS,
      ...changes,
    };
  }

  /** Starts it, also after `down`, and waits until it answers. */
  async up(): Promise<void> {
    // Metadata beside the objects: not every file system of a build machine has extended attributes.
    const backend = ["posix", "--sidecar", join(this.dir.path, "sidecar"), join(this.dir.path, "root")];
    this.child = Bun.spawn([PROGRAM ?? "", "--quiet", "--keep-alive", "--port", `127.0.0.1:${this.port}`, ...backend], {
      env: { ROOT_ACCESS_KEY: CREDENTIALS.accessKeyId, ROOT_SECRET_KEY: CREDENTIALS.secretAccessKey },
      stdout: "ignore",
      stderr: "ignore",
    });
    for (;;) {
      const answered = await fetch(this.endpoint).then(
        () => true,
        () => false,
      );
      if (answered) return;
      if (this.child.exitCode !== null) throw new Error(`versitygw ended with ${this.child.exitCode}`);
      await Bun.sleep(20);
    }
  }

  /** At once, as a crash; what was stored stays. */
  async down(): Promise<void> {
    this.child?.kill("SIGKILL");
    await this.child?.exited;
  }

  /** It takes connections and answers nothing, until SIGCONT. */
  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.child?.kill(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down();
    await this.dir[Symbol.asyncDispose]();
  }
}
