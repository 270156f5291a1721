/** A small history of a service on a new disk: a start, an account, money, chunks, responses, a run, the end. */
import type { CountedProvider } from "../counted-provider.ts";
import type { Target } from "../payers.ts";
import type { Place, Server } from "../program.ts";
import { type Ask, chunk, complete, file, job, type Reply, response, socketChunk, upload } from "./asks.ts";
import type { Disk } from "./disk.ts";

const ROBOTS = ["vendorA/dreamzero-astra", "vendorC/rho", "vendorD/isaac-0.5", "vendorE/pi0.5", "vendorF/picasso"];
const EMAIL = "robot@example.org";

/** `tendon.toml`: models without numbers, which are not what is tried, and a provider that is a test's. */
export function configuration(provider: CountedProvider): string {
  const robots = [...ROBOTS, "vendorB/molmoact2"].map((id) => `[robot."${id}:yam"]\ndevice = "echo"\n`);
  return [...robots, provider.tables].join("\n");
}

export interface Told {
  readonly ask: Ask;
  readonly reply: Reply;
  /** Operations of the disk when its client had it. */
  readonly operations: number;
}

export interface Happened {
  readonly told: readonly Told[];
  /** The key of the account, when it was told; from then on it has credit too. */
  readonly key: string;
  readonly keyTold: number;
  readonly accountId: string;
}

/** Program and folder of a history. */
export interface Stage {
  readonly place: Place;
  readonly disk: Disk;
  readonly frames: readonly Uint8Array[];
}

export function serveOn({ place }: Stage, data: string, environment: Record<string, string> = {}): Promise<Server> {
  return place.serve(["--config", place.path("tendon.toml"), "--data", data], environment);
}

/** An account with credit and a key, made beside the service. */
export async function payerBeside({ place, disk }: Stage): Promise<{ accountId: string; key: string }> {
  const admin = async <T>(...words: string[]): Promise<T> => {
    const ended = await place.run(["admin", ...words, "--data", disk.data, "--json"], disk.environment);
    if (ended.code !== 0) throw new Error(`admin ${words.join(" ")}: ${ended.stderr}`);
    return JSON.parse(ended.stdout) as T;
  };
  const { id } = await admin<{ id: string }>("account", "create", "--email", EMAIL, "--credit", "5");
  await admin("credit", "--account", EMAIL, "--usd", "20");
  const { key } = await admin<{ key: string }>("key", "create", "--account", EMAIL);
  return { accountId: id, key };
}

const RUN = "arm-1/run-1";
const FILES = { "a.txt": "first ".repeat(40), "b/c.txt": "second ".repeat(900) };

/** Everything that a client asks, in order. */
function asks(frames: readonly Uint8Array[]): readonly Ask[] {
  return [
    chunk(frames, "alone"),
    chunk(frames, "s-0", "s", 0),
    chunk(frames, "s-1", "s", 1),
    socketChunk(frames, "w-0"),
    response("live-1"),
    job("job-1"),
    file(RUN, "a.txt", FILES["a.txt"]),
    upload(RUN, "b/c.txt", FILES["b/c.txt"]),
    complete(RUN, FILES),
    chunk(frames, "last"),
  ];
}

/** Lets it happen; every answer must be the right one. */
export async function happen(stage: Stage): Promise<Happened> {
  const { disk, frames } = stage;
  const server = await serveOn(stage, disk.data, disk.environment);
  const { accountId, key } = await payerBeside(stage);
  const keyTold = disk.operations;
  const target: Target = { url: server.ready.url, key };
  const told: Told[] = [];
  for (const ask of asks(frames)) {
    const reply = await ask.send(target);
    if (reply.status !== 200) throw new Error(`${ask.name} is answered ${reply.status}: ${reply.said}`);
    told.push({ ask, reply, operations: disk.operations });
  }
  const ended = await fetch(`${target.url}/v1/robot/sessions/s?model=vendorB%2Fmolmoact2%3Ayam`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${key}` },
  });
  if (ended.status !== 204) throw new Error(`the session ended with ${ended.status}`);
  await server.stop();
  return { told, key, keyTold, accountId };
}
