/** A robot's neighbours, who live on a thread of their own. */
import { Problem } from "../../std/problem.ts";
import type { KindName, Neighborhood } from "./kinds.ts";
import type { FromNeighbors, ToNeighbors } from "./messages.ts";

/** The same rule for its path as for the threads of the service (src/service/store.ts). */
function neighborThread(): Worker {
  const path = import.meta.url.includes("$bunfs") ? "./measure/interference/thread.js" : "./thread.ts";
  return new Worker(new URL(path, import.meta.url));
}

export interface Work {
  /** Requests that were sent a second. */
  readonly perSecond: number;
  readonly failed: number;
}

export class Neighbors {
  private heard = Promise.withResolvers<FromNeighbors | Problem>();

  private constructor(private readonly worker: Worker) {
    worker.onmessage = ({ data }: MessageEvent<FromNeighbors>) => this.heard.resolve(data);
    worker.onerror = ({ message }) =>
      this.heard.resolve(new Problem(`the thread of the neighbours failed: ${message}`));
  }

  /** Them, and the address of their provider of language models. */
  static async open(): Promise<{ readonly neighbors: Neighbors; readonly providerOrigin: string } | Problem> {
    const neighbors = new Neighbors(neighborThread());
    const said = await neighbors.heard.promise;
    if (said instanceof Problem) return said;
    return { neighbors, providerOrigin: said.type === "ready" ? said.providerOrigin : "" };
  }

  async start(kind: KindName, at: Neighborhood): Promise<Problem | undefined> {
    const said = await this.ask({ type: "start", kind, at });
    return said instanceof Problem ? said : undefined;
  }

  /** Resolves when all that they asked is answered. */
  async stop(): Promise<Work | Problem> {
    const said = await this.ask({ type: "stop" });
    if (said instanceof Problem) return said;
    return said.type === "stopped" ? said : { perSecond: Number.NaN, failed: Number.NaN };
  }

  async close(): Promise<void> {
    await this.ask({ type: "end" });
    this.worker.terminate();
  }

  private async ask(message: ToNeighbors): Promise<FromNeighbors | Problem> {
    this.heard = Promise.withResolvers();
    this.worker.postMessage(message);
    return await this.heard.promise;
  }
}
