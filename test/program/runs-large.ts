/**
 * One large file, uploaded in parts while the service is killed and restarted. It arrives byte for byte, the service's memory stays
 * small, and flipped bits are found. The service has one small model, so that what is measured are uploads.
 */
import { createHash } from "node:crypto";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../src/limits.ts";
import { BadLink } from "../client/bad-link.ts";
import type { Target } from "./payers.ts";
import { Place, type Server } from "./program.ts";
import { seededBytes, sha256Of } from "./runs-kill/content.ts";
import { must } from "./runs-kill/model.ts";
import { ask, jsonOf, type Reply } from "./runs-kill/requests.ts";
import { Memory } from "./runs-large/memory.ts";

const MIB = 1024 * 1024;
const BUNDLE = join(import.meta.dir, "../../dist/models/picasso-yam");
const RUN = "/v1/robot/runs/arm-1/large";
const UPLOAD = `${RUN}/uploads/videos/long.mp4`;
/** The byte of a request whose lowest bit the link inverts; it lies in the body. */
const FLIPPED_BYTE = 100_000;
/** Parts that are sent at once. */
const AT_ONCE = 4;

export interface LargePlan {
  readonly mib: number;
  /** Numbers of acknowledged parts at which the service is killed. */
  readonly kills: readonly number[];
  /** The time from the request to finish until one more kill, if there is one. */
  readonly endKillMs?: number;
  /** Parts that go through the proxy first. */
  readonly flipped: readonly number[];
}

export interface LargeUpload {
  readonly kills: number;
  readonly parts: number;
  /** More than `parts`: those that a kill has cut off came again. */
  readonly partsSent: number;
  readonly flipsFound: number;
  /** Bytes: resident before the upload, at most afterwards, and at most with the start of the process. */
  readonly memoryBefore: number;
  readonly memorySampled: number;
  readonly memoryGreatest: number;
}

interface State {
  readonly upload_id: string;
  readonly received: { readonly part: number; readonly sha256: string }[];
}

export async function largeUpload(plan: LargePlan): Promise<LargeUpload> {
  await using place = await Place.make();
  await cp(BUNDLE, place.path("models/picasso"), { recursive: true });
  const large = new Large(place, plan);
  await large.start();
  return await large.run();
}

class Large {
  private server: Server | undefined;
  private readonly known = new Map<number, string>();
  private uploadId = "";
  private kills = 0;
  private partsSent = 0;
  private partBytes = 0;
  private readonly size: number;

  constructor(
    private readonly place: Place,
    private readonly plan: LargePlan,
  ) {
    this.size = plan.mib * MIB;
  }

  async start(): Promise<void> {
    this.server = await this.place.serve(["--models", this.place.path("models"), "--data", this.place.path("data")]);
  }

  private get target(): Target {
    const ready = this.server?.ready;
    return { url: ready?.url ?? "", key: ready?.api_key ?? "" };
  }

  async run(): Promise<LargeUpload> {
    using memory = new Memory(() => this.server?.child.pid ?? 0);
    await Bun.sleep(500);
    const memoryBefore = await memory.sample();
    const { mib, kills, endKillMs, flipped } = this.plan;
    const begun = await ask(this.target, UPLOAD, { method: "POST", json: { size: this.size } });
    const { upload_id, part_size, parts } = told<{ upload_id: string; part_size: number; parts: number }>(begun, 201);
    this.uploadId = upload_id;
    this.partBytes = part_size;
    const sha256 = this.digest(parts);
    const flipsFound = await this.flip(flipped);
    for (const enough of [...kills, parts]) {
      await this.send(parts, enough);
      if (enough < parts) await this.killed();
    }
    if (endKillMs !== undefined) {
      const ended = ask(this.target, `${UPLOAD}?upload_id=${upload_id}`, { method: "POST", json: {} });
      await Bun.sleep(endKillMs);
      await this.killed(ended);
    }
    const end = await ask(this.target, `${UPLOAD}?upload_id=${upload_id}`, { method: "POST", json: {} });
    must(told<{ sha256: string }>(end, 200).sha256 === sha256, "the upload ended as another file than was sent");
    await this.expectReadable(sha256);
    await memory.sample();
    await this.server?.stop();
    must(kills.length + (endKillMs === undefined ? 0 : 1) === this.kills, "the service was killed too seldom");
    const { sampled: memorySampled, greatest: memoryGreatest } = memory;
    must(mib * MIB === this.size, "the size is that of the plan");
    return {
      kills: this.kills,
      parts,
      partsSent: this.partsSent,
      flipsFound,
      memoryBefore,
      memorySampled,
      memoryGreatest,
    };
  }

  private part(number: number): Uint8Array {
    const left = this.size - (number - 1) * this.partBytes;
    return seededBytes(`large/${number}`, Math.min(left, this.partBytes));
  }

  private digest(parts: number): string {
    const hash = createHash("sha256");
    for (let number = 1; number <= parts; number += 1) hash.update(this.part(number));
    return hash.digest("hex");
  }

  /** How many parts with a wrong bit were found out; nothing of them is kept. */
  private async flip(numbers: readonly number[]): Promise<number> {
    await using link = await BadLink.to(this.target.url);
    for (const number of numbers) {
      const bytes = this.part(number);
      const request = { method: "PUT", bytes, sha256: sha256Of(bytes) };
      const address = `${UPLOAD}?upload_id=${this.uploadId}&part=${number}`;
      link.next("PUT", { kind: "flip up", atByte: FLIPPED_BYTE });
      const { code } = await ask({ ...this.target, url: link.url }, address, request);
      must(code === "checksum_mismatch", `part ${number} with a wrong bit is answered ${code}`);
    }
    const state = await this.state();
    must(state.received.length === 0, "a part with a wrong bit counts as received");
    const data = this.place.path("data");
    const kept = [...(await readdir(join(data, "staging"))), ...(await readdir(join(data, "parts")))];
    must(kept.length === 0, `of parts with a wrong bit ${kept.join()} is kept`);
    return numbers.length;
  }

  /** Sends the missing parts, several at once, until `enough` are acknowledged or the service is killed. */
  private async send(parts: number, enough: number): Promise<void> {
    const absent = Array.from({ length: parts }, (_, index) => index + 1).filter((part) => !this.known.has(part));
    const server = this.server;
    const worker = async () => {
      for (let part = absent.shift(); part !== undefined; part = absent.shift()) {
        const bytes = this.part(part);
        this.partsSent += 1;
        const address = `${UPLOAD}?upload_id=${this.uploadId}&part=${part}`;
        const reply = await ask(this.target, address, { method: "PUT", bytes });
        if (reply.status === 0) return;
        this.known.set(part, told<{ sha256: string }>(reply, 200).sha256);
        // While the others send.
        if (this.known.size >= enough && enough < parts) server?.child.kill("SIGKILL");
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  /** What a client does that has forgotten everything but the path. */
  private async killed(ended?: Promise<Reply>): Promise<void> {
    this.server?.child.kill("SIGKILL");
    await this.server?.child.exited;
    const told = await ended;
    must(
      told === undefined || told.status === 0,
      "the end of the upload was answered before the kill; kill it earlier",
    );
    this.kills += 1;
    await this.start();
    const found = jsonOf<{ data: State[] }>((await ask(this.target, UPLOAD)).bytes).data;
    must(found.map(({ upload_id }) => upload_id).join() === this.uploadId, "the upload is not found after the kill");
    const { received } = await this.state();
    const there = new Map(received.map(({ part, sha256 }) => [part, sha256]));
    for (const [part, sha256] of this.known) {
      must(there.get(part) === sha256, `part ${part} was acknowledged, and is not there after the kill`);
    }
    // The answer of a part may have been lost.
    for (const [part, sha256] of there) {
      must(sha256 === sha256Of(this.part(part)), `part ${part} is there with other bytes`);
      this.known.set(part, sha256);
    }
  }

  private async state(): Promise<State> {
    return told<State>(await ask(this.target, `${UPLOAD}?upload_id=${this.uploadId}`), 200);
  }

  private async expectReadable(sha256: string): Promise<void> {
    const files = [{ path: "videos/long.mp4", size: this.size, sha256 }];
    const completed = await ask(this.target, `${RUN}/complete`, { method: "POST", json: { files } });
    told(completed, 200);
    const headers = { authorization: `Bearer ${this.target.key}` };
    const response = await fetch(`${this.target.url.replace(/\/$/, "")}${RUN}/files/videos/long.mp4`, { headers });
    const hash = createHash("sha256");
    for await (const piece of response.body ?? []) hash.update(piece);
    must(hash.digest("hex") === sha256, "the file that is read is not the one that was sent");
    const usage = told<{ stored_bytes: number; reserved_bytes: number }>(
      await ask(this.target, "/v1/robot/runs/usage"),
      200,
    );
    // The records of the run and of the file, and the manifest.
    const stored = this.size + 2 * LIMITS.runRecordBytes + completed.bytes.length;
    must(usage.stored_bytes === stored && usage.reserved_bytes === 0, "usage is not the size of the file");
  }
}

function told<T>(reply: Reply, due: number): T {
  must(reply.status === due, `an answer is ${reply.status} ${reply.code}, due was ${due}`);
  return jsonOf<T>(reply.bytes);
}
