/**
 * One random history of language models. Clients of two accounts send, repeat, change and abandon requests on two nodes. Meanwhile
 * the provider fails, hangs and is cut, the store answers late, twice or not at all, or is away from all nodes, clocks jump, and
 * processes are killed or end in order. Same seed, same history.
 */
import { assert } from "../../src/std/assert.ts";
import { checkCall, checkLiving, checkLlmEnd } from "./llm-check.ts";
import type { Step } from "./llm-provider.ts";
import { LlmRequests } from "./llm-requests.ts";
import { STORE_FAULTS, type StoreFault } from "./llm-store.ts";
import type { LlmNode, LlmWorld } from "./llm-world.ts";
import { Seeded } from "./trace.ts";
import { flush } from "./world.ts";

const HOUR_MS = 3_600_000;

export class LlmHistory extends Seeded {
  readonly requests: LlmRequests;
  /** What becomes of the next operations of the store. */
  private readonly storeFaults: StoreFault[] = [];
  /** Everybody is let through. */
  private ending = false;

  constructor(
    readonly world: LlmWorld,
    seed: string,
    private readonly actions: number,
  ) {
    super(seed);
    this.requests = new LlmRequests(this);
    world.nextStep = () => this.step();
    world.fault = (operation) => this.storeFault(operation);
    world.onCall = (mark) => {
      this.note(`the provider is called for ${mark}`);
      this.call(mark);
    };
  }

  /** Runs it to its end, when everybody is answered and all that was accepted has ended; throws where a promise is broken. */
  async run(): Promise<void> {
    for (let action = 0; action < this.actions; action += 1) {
      // Ids of the same moment have no order of their own.
      this.world.clock.advance(1);
      await this.act();
      await flush();
      assert(this.world.faults.length === 0, `no fault of our own: ${this.world.faults.join()}`);
      checkLiving(this.world);
    }
    await this.finish();
  }

  anyNode(): LlmNode {
    return this.pick(this.world.nodes);
  }

  /** A response whose id a client got is there for its account at any time, unless it is hidden, and for nobody else. */
  expectShown(id: string, stranger: boolean, status: number, text: string): void {
    if (status === 503) return;
    const right = stranger || this.requests.hidden.has(id) ? status === 404 : status === 200 && text.includes(id);
    assert(right, `${id} is there for its account alone: ${status} ${text}`);
  }

  private async act(): Promise<void> {
    const { world, requests } = this;
    if (world.store.down && this.below(5) === 0) return this.turnStore("up");
    const choice = this.below(100);
    if (choice < 14) return requests.send();
    if (choice < 20) return requests.again();
    if (choice < 22) return requests.conflict();
    if (choice < 25) return requests.abandon();
    if (choice < 28) return requests.get();
    if (choice < 36) return this.armStore();
    if (choice < 38) return this.turnStore("down");
    if (choice < 45) return await this.pass(this.pick([100, 1_000, 3_000, 11_000, 31_000]));
    if (choice < 47) return this.jump();
    if (choice < 49) return this.kill();
    if (choice < 50) return await this.end(this.below(world.nodes.length));
    if (choice < 51) return await this.outage();
    await this.open();
  }

  /** What is wrong with it is no failure of the provider. */
  private call(mark: string): void {
    try {
      checkCall(this, mark);
    } catch (error) {
      this.world.faults.push((error as Error).message);
    }
  }

  /** The seed's next step of a call. */
  private step(): Step {
    const usage = { promptTokens: 30, cachedTokens: 10, completionTokens: 20, reasoningTokens: 5 };
    const choice = this.below(this.ending ? 8 : 20);
    if (choice < 5) return { kind: "answer", usage, full: true };
    if (choice < 6) return { kind: "answer", usage: undefined, full: true };
    if (choice < 7) return { kind: "answer", usage: { ...usage, completionTokens: 1_000_000 }, full: false };
    if (choice < 13) return { kind: "piece" };
    return { kind: this.pick(["unavailable", "unavailable", "rejected", "invalid", "hang"]) };
  }

  private storeFault(operation: string): StoreFault | undefined {
    if (this.ending) return undefined;
    const fault = this.storeFaults.shift();
    if (fault) this.note(`${operation} is ${fault}`);
    return fault;
  }

  private armStore(): void {
    for (let count = 1 + this.below(3); count > 0; count -= 1) this.storeFaults.push(this.pick(STORE_FAULTS));
  }

  private turnStore(way: "up" | "down"): void {
    this.note(`the store is ${way}`);
    this.world.store.down = way === "down";
  }

  /** The store is away from all nodes for longer than an owner may be silent. */
  private async outage(): Promise<void> {
    this.turnStore("down");
    await this.pass(this.pick([17_000, 21_000]));
    this.turnStore("up");
    await this.pass(3_000);
  }

  private async pass(ms: number): Promise<void> {
    this.note(`${ms} ms pass`);
    await this.world.pass(ms);
  }

  private jump(): void {
    const hours = this.pick([-5_000, -30, -1, 1, 30, 5_000]);
    this.note(`the clock jumps by ${hours} hours`);
    this.world.jumpedMs += hours * HOUR_MS + this.below(HOUR_MS);
  }

  private kill(): void {
    const index = this.below(this.world.nodes.length);
    this.note(`kill and restart ${index}`);
    const node = this.world.node(index);
    node.kill();
    this.requests.excuse(node);
    this.world.start(index);
  }

  private async end(index: number): Promise<void> {
    this.note(`${index} ends in order`);
    const node = this.world.node(index);
    const ended = node.end();
    await flush();
    // What the store holds up is let through; a process that waits for longer is killed.
    while (node.gates.size > 0) await node.gates.open(0);
    await flush();
    node.kill();
    this.requests.excuse(node);
    ended.catch(() => {});
    this.world.start(index);
  }

  private async open(): Promise<void> {
    const { gates } = this.world;
    if (gates.length === 0) return;
    const some = this.pick(gates);
    this.note(`open ${await some.open(this.below(some.size))}`);
  }

  /** Opens every gate, and lets time pass, until nobody waits and nothing runs. */
  private async finish(): Promise<void> {
    const { world } = this;
    this.note("everybody is let through");
    this.ending = true;
    world.store.down = false;
    const open = "SELECT id FROM responses WHERE ended_at IS NULL";
    for (
      let round = 0;
      this.requests.waits || world.gates.length > 0 || world.store.rows(open).length > 0;
      round += 1
    ) {
      if (round > 3_000) throw new Error("somebody waits for ever");
      if (world.gates.length > 0) await this.open();
      else await world.pass(1_000);
      await flush();
    }
    // Waits that were raced end by their time.
    await this.pass(61_000);
    await checkLlmEnd(this);
  }
}
