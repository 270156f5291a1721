/** Outcomes that wait until the history lets them through, so that a seed decides every order. */

interface Gate {
  readonly what: string;
  /** Resolves once the outcome is through. */
  open(): Promise<void>;
}

export class Gates {
  private readonly waiting: Gate[] = [];

  get size(): number {
    return this.waiting.length;
  }

  /** The outcome of `work`, which begins when the gate opens. */
  hold<T>(what: string, work: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const open = async () => {
      try {
        resolve(await work());
      } catch (error) {
        reject(error);
      }
    };
    this.waiting.push({ what, open });
    return promise;
  }

  /** Opens the gate at `index`, in the order in which they were closed; says which it was. */
  async open(index: number): Promise<string> {
    const [gate] = this.waiting.splice(index, 1);
    await gate?.open();
    return gate?.what ?? "nothing";
  }

  /** What waits is never let through: the process that waited for it is gone. */
  forget(): void {
    this.waiting.length = 0;
  }
}

/** Work that nobody awaits: a fault in it is one of the simulation, and must end the run. */
export function inBackground(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    queueMicrotask(() => {
      throw error;
    });
  });
}
