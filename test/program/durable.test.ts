/** What was answered is on the disk: in the order of system calls, after kill -9, after a restart. */
import { beforeAll, describe, expect, test } from "bun:test";
import { testRequirement } from "../../src/config/environment.ts";
import { killRounds } from "./kill.ts";
import { Place, requestOf } from "./program.ts";
import { footage } from "./robot.ts";

let jpegs: Uint8Array[];
beforeAll(async () => {
  const { cameras } = await footage(1);
  jpegs = cameras.flat();
}, 60_000);

const strace = Bun.which("strace");

describe("durability", () => {
  // Without strace nobody sees the order of system calls; `.ci/run` installs it.
  test.skipIf(strace === null && testRequirement() === "none")(
    "the log's fdatasync ends before the answer is written",
    async () => {
      await using place = await Place.make();
      const log = place.path("calls");
      // -D: the child that is started is the server itself, and gets its signals.
      const tracer = [strace ?? "strace", "-D", "-f", "-y", "-s", "96", "-o", log];
      const calls = ["-e", "trace=fdatasync,fsync,write,writev,send,sendto,sendmsg,recvfrom,read"];
      const server = await place.serve([], {}, [...tracer, ...calls]);
      const response = await server.post(requestOf(jpegs, { session_id: "s", observation_id: "o" }));
      expect([response.status, (await response.text()).includes("actions")]).toEqual([200, true]);
      expect(await server.stop()).toBe(0);
      const lines = (await traced(log)).split("\n");
      const asked = lines.findIndex((line) => line.includes("POST /v1/chat/completions"));
      const answered = lines.findIndex((line, index) => index > asked && line.includes('"HTTP/1.1 200 OK'));
      const synced = lines.findIndex((line, index) => index > asked && endsSync(lines, line));
      expect([asked > 0, synced > asked, answered > synced]).toEqual([true, true, true]);
    },
    60_000,
  );

  test("kill -9 at 10 random points under load: every answered observation_id replays byte-equal after the restart", async () => {
    const { rounds, answered } = await killRounds(10, jpegs, "small");
    expect([rounds, answered > 10]).toEqual([10, true]);
  }, 120_000);
});

/** The tracer's log, once it has seen the last process end. */
async function traced(log: string): Promise<string> {
  for (;;) {
    const text = await Bun.file(log).text();
    if (/\+\+\+ exited with 0 \+\+\+\n$/.test(text)) return text;
    await Bun.sleep(50);
  }
}

/** Whether this line ends a successful sync of the log, also where another thread's call stands between its two halves. */
function endsSync(lines: readonly string[], line: string): boolean {
  if (/f(data)?sync\(\d+<[^>]*tendon\.sqlite-wal>\)\s+= 0/.test(line)) return true;
  const resumed = /^(\d+) .*<\.\.\. f(?:data)?sync resumed>\)\s+= 0/.exec(line);
  if (!resumed) return false;
  const begun = lines.slice(0, lines.indexOf(line)).findLast((one) => one.startsWith(`${resumed[1]} `));
  return begun?.includes("tendon.sqlite-wal>") ?? false;
}
