/** A server that is killed again and again under load, and what its clients got before. */
import { RandomStream } from "../../src/std/random.ts";
import { Place, requestOf, type Server } from "./program.ts";

/** Every model answers zeros at once: the answers' way to the disk is what is tried. */
const ECHO = [
  "vendorA/dreamzero-astra",
  "vendorB/molmoact2",
  "vendorC/rho",
  "vendorD/isaac-0.5",
  "vendorE/pi0.5",
  "vendorF/picasso",
]
  .map((id) => `[robot."${id}:yam"]\ndevice = "echo"\n`)
  .join("\n");
const CLIENTS = 6;
/** Answers before most kills. */
const SOME = 2;
/** Milliseconds of load after these answers, at most. */
const LOAD_MS = 120;

interface Answer {
  readonly body: string;
  readonly text: string;
  readonly generationId: string | null;
}

export interface Killed {
  readonly rounds: number;
  /** Answers that clients had read whole, over all rounds. */
  readonly answered: number;
  /** Observations that were under way when the server died. */
  readonly cutOff: number;
}

/** Throws at the first answer that a restarted server does not give again byte for byte. */
export async function killRounds(rounds: number, jpegs: readonly Uint8Array[], seed: string): Promise<Killed> {
  await using place = await Place.make();
  await Bun.write(place.path("tendon.toml"), ECHO);
  const random = new RandomStream(seed);
  const start = () => place.serve(["--config", place.path("tendon.toml")]);
  let server = await start();
  let answered = 0;
  let cutOff = 0;
  for (let round = 0; round < rounds; round += 1) {
    const load = new Load(server, jpegs, round);
    const running = load.run();
    // Every third kill may come before the first answer. A machine that is busy with other work would else answer nothing in time.
    if (round % 3 !== 2) await load.answersSome;
    await Bun.sleep(random.word() % LOAD_MS);
    server.child.kill("SIGKILL");
    await server.child.exited;
    await running;
    server = await start();
    for (const answer of load.answers) await expectReplay(server, answer);
    for (const body of load.open) await expectAnswered(server, body);
    answered += load.answers.length;
    cutOff += load.open.size;
  }
  await server.stop();
  return { rounds, answered, cutOff };
}

/** Clients that send observations one after another until the server is gone. */
class Load {
  readonly answers: Answer[] = [];
  readonly open = new Set<string>();
  private readonly some = Promise.withResolvers<void>();
  /** Resolves when there are some answers. */
  readonly answersSome = this.some.promise;

  constructor(
    private readonly server: Server,
    private readonly jpegs: readonly Uint8Array[],
    private readonly round: number,
  ) {}

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => this.client(client)));
  }

  private async client(client: number): Promise<void> {
    // Half of them run an episode, half have no session.
    const session = client % 2 === 0 ? { session_id: `${this.round}-${client}` } : {};
    for (let step = 0; ; step += 1) {
      const body = requestOf(this.jpegs, { observation_id: `${this.round}-${client}-${step}`, seed: step, ...session });
      this.open.add(body);
      try {
        const response = await this.server.post(body);
        const text = await response.text();
        if (response.status !== 200) throw new Error(`an observation was answered ${response.status}: ${text}`);
        this.answers.push({ body, text, generationId: response.headers.get("x-generation-id") });
        this.open.delete(body);
        if (this.answers.length === SOME) this.some.resolve();
      } catch (error) {
        this.some.resolve();
        if ((error as Error).message.startsWith("an observation")) throw error;
        return;
      }
    }
  }
}

async function expectReplay(server: Server, { body, text, generationId }: Answer): Promise<void> {
  const response = await server.post(body);
  const same = (await response.text()) === text && response.headers.get("x-generation-id") === generationId;
  if (!same || response.headers.get("idempotent-replayed") !== "true") {
    throw new Error(`after the restart an answered observation was answered ${response.status} and not replayed`);
  }
}

/** What was cut off is either known and replayed, or runs now; an episode of before the kill is over. */
async function expectAnswered(server: Server, body: string): Promise<void> {
  const response = await server.post(body);
  if (response.status !== 200 && response.status !== 410) {
    throw new Error(`an observation that was cut off is answered ${response.status}: ${await response.text()}`);
  }
}
