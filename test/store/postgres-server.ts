/** A real PostgreSQL server for tests: its own folder, its own port on loopback, gone at the end. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { freePort } from "./temporary.ts";

/** The folder of the server's programs on Debian and others; undefined: there is no server here. */
const BIN = [...new Bun.Glob("postgresql*/*/bin").scanSync({ cwd: "/usr/lib", onlyFiles: false, absolute: true })]
  .sort()
  .at(-1);
export const POSTGRES = BIN === undefined ? undefined : join(BIN, "postgres");

/** PostgreSQL refuses to be root. */
const UNPRIVILEGED =
  process.getuid?.() === 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : [];

/** A language's order of texts, in which "a" stands before "B": what must be ordered by bytes has to say so. */
const LANGUAGE = ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"];

export class PostgresServer implements AsyncDisposable {
  private child: Bun.Subprocess | undefined;
  private databases = 0;

  private constructor(
    private readonly dir: string,
    readonly port: number,
    private readonly settings: readonly string[],
  ) {}

  /** `settings`: such as `fsync=off`, for tests that cut no power. */
  static async start(...settings: readonly string[]): Promise<PostgresServer> {
    return await PostgresServer.make(settings, "initdb", ["-U", "tendon", "-A", "trust", "-E", "UTF8", ...LANGUAGE]);
  }

  /** A replica that gets the log of this server by itself, without this server waiting for it, and answers reads. */
  async replica(): Promise<PostgresServer> {
    const from = ["-h", "127.0.0.1", "-p", String(this.port), "-U", "tendon"];
    return await PostgresServer.make(this.settings, "pg_basebackup", [...from, "-R", "-X", "stream", "-c", "fast"]);
  }

  /** Starts a server in the folder that the program fills. */
  private static async make(settings: readonly string[], program: string, flags: readonly string[]) {
    const dir = await mkdtemp(join(tmpdir(), "tendon-postgres-"));
    await Bun.$`${UNPRIVILEGED.length > 0 ? ["chown", "postgres", dir] : ["true"]}`.quiet();
    const command = [...UNPRIVILEGED, join(BIN ?? "", program), "-D", join(dir, "data"), ...flags, "--no-sync"];
    const made = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
    if ((await made.exited) !== 0) throw new Error(await new Response(made.stderr).text());
    const server = new PostgresServer(dir, await freePort(), settings);
    await server.up();
    return server;
  }

  /** Stops its replication: it gets no more of the log. */
  async cutOff(): Promise<void> {
    await this.ask("ALTER SYSTEM SET primary_conninfo = ''");
    await this.ask("SELECT pg_reload_conf()");
    while ((await this.ask("SELECT pid FROM pg_stat_wal_receiver WHERE status = 'streaming'")).length > 0)
      await Bun.sleep(10);
  }

  /** Makes the standby a server that writes, on a new timeline. */
  async promote(): Promise<void> {
    await this.ask("SELECT pg_promote()");
  }

  /** Whether it has all that the other server had when it was asked. */
  async caughtUp(primary: PostgresServer): Promise<void> {
    const [at] = await primary.ask("SELECT pg_current_wal_flush_lsn()::text AS lsn");
    const text = `SELECT 1 WHERE pg_last_wal_replay_lsn() >= '${at?.lsn}'::pg_lsn`;
    while ((await this.ask(text)).length === 0) await Bun.sleep(10);
  }

  private async ask(text: string): Promise<readonly Record<string, unknown>[]> {
    const sql = postgres(this.url("postgres"), { max: 1 });
    const rows = await sql.unsafe(text);
    await sql.end();
    return [...rows];
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  url(database: string): string {
    return `postgres://tendon@127.0.0.1:${this.port}/${database}`;
  }

  /** The address of a new, empty database. */
  async database(): Promise<string> {
    this.databases += 1;
    const name = `t${this.databases}`;
    const sql = postgres(this.url("postgres"), { max: 1 });
    await sql.unsafe(`CREATE DATABASE ${name}`);
    await sql.end();
    return this.url(name);
  }

  /** Starts it, also after `kill`, and waits until it answers. */
  async up(): Promise<void> {
    const flags = [
      "listen_addresses=127.0.0.1",
      `port=${this.port}`,
      `unix_socket_directories=${this.dir}`,
      ...this.settings,
    ];
    this.child = Bun.spawn(
      [...UNPRIVILEGED, POSTGRES ?? "", "-D", join(this.dir, "data"), ...flags.flatMap((flag) => ["-c", flag])],
      { stdout: "ignore", stderr: "ignore" },
    );
    for (;;) {
      const sql = postgres(this.url("postgres"), { max: 1, connect_timeout: 1 });
      const answered = await sql`SELECT 1`.then(Boolean, () => false);
      await sql.end({ timeout: 1 });
      if (answered) return;
      if (this.child.exitCode !== null) throw new Error(`PostgreSQL ended with ${this.child.exitCode}`);
      await Bun.sleep(50);
    }
  }

  /** SIGSTOP and SIGCONT reach the server and all that it started. */
  signal(name: "SIGSTOP" | "SIGCONT"): void {
    const children = Bun.spawnSync(["pgrep", "-P", String(this.pid)])
      .stdout.toString()
      .trim()
      .split("\n");
    // A child may end between the two commands, which is no fault.
    Bun.spawnSync(["kill", "-s", name.slice(3), String(this.pid), ...children.filter(Boolean)]);
  }

  /** Whether it only replays the log of another server (which is not there), from its next start on. */
  async standby(on: boolean): Promise<void> {
    const signal = join(this.dir, "data", "standby.signal");
    await (on ? Bun.write(signal, "") : rm(signal));
  }

  /** SIGQUIT: at once, without a word to anybody, as a crash; it recovers from its log at the next start. */
  async down(): Promise<void> {
    this.child?.kill("SIGQUIT");
    await this.child?.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGCONT");
    await this.down();
    await rm(this.dir, { recursive: true, force: true });
  }
}
