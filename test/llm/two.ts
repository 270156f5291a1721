/** Two nodes on one store, with a provider that answers when a test lets it. */
import { expect } from "bun:test";
import type { ProviderCall, Step } from "../sim/llm-provider.ts";
import type { StoreFault } from "../sim/llm-store.ts";
import { type LlmNode, LlmWorld } from "../sim/llm-world.ts";
import { flush } from "../sim/world.ts";

const USAGE = { promptTokens: 30, cachedTokens: 10, completionTokens: 20, reasoningTokens: 0 };
export const ANSWER: Step = { kind: "answer", usage: USAGE, full: true };
/** Two nodes; a test opens the gates of their calls. */
export class Two {
  private constructor(readonly world: LlmWorld) {}

  static async open(): Promise<Two> {
    const world = await LlmWorld.open(2);
    world.nextStep = () => ANSWER;
    return new Two(world);
  }

  get first(): LlmNode {
    return this.world.node(0);
  }

  get second(): LlmNode {
    return this.world.node(1);
  }

  /** The key is the text as well. */
  async post(node: LlmNode, model: string, key: string, more: object = {}): Promise<Reply> {
    const body = JSON.stringify({ model, input: key, max_output_tokens: 100, ...more });
    const headers = { "content-type": "application/json", "idempotency-key": key };
    const response = await node.send("/v1/responses", 0, { method: "POST", body, headers });
    const text = await response.text();
    return { status: response.status, text, replayed: response.headers.get("idempotent-replayed") === "true" };
  }

  async get(node: LlmNode, id: string): Promise<Body> {
    const response = await node.send(`/v1/responses/${id}`, 0, {});
    return (await response.json()) as Body;
  }

  /** The calls of the provider, by the text of the request. */
  calls(mark: string): readonly ProviderCall[] {
    return this.world.calls.filter((call) => call.mark === mark);
  }

  /** What the next operations of this name become, one after another. */
  fault(name: string, ...faults: readonly StoreFault[]): void {
    const left = [...faults];
    this.world.fault = (operation) => (operation === name ? left.shift() : undefined);
  }

  /** Lets all calls of a node go on. */
  async answer(node: LlmNode): Promise<void> {
    while (node.gates.size > 0) await node.gates.open(0);
    await flush();
  }

  /** Nothing is running or held, the books are right, and `count` responses are paid for. */
  async expectPaid(count: number): Promise<void> {
    const { store, faults } = this.world;
    const accounts = await store.accounts.list();
    expect(Array.isArray(accounts) && accounts.map(({ held }) => held)).toEqual([0n, 0n]);
    expect(store.report().problem).toBeUndefined();
    expect(store.rows("SELECT id FROM charges")).toHaveLength(count);
    expect(store.rows("SELECT id FROM responses WHERE ended_at IS NULL")).toEqual([]);
    expect(faults).toEqual([]);
  }
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly replayed: boolean;
}

interface Body {
  readonly id: string;
  readonly status: string;
  readonly output_text: string;
  readonly error: { readonly code: string } | null;
}

export function bodyOf({ text }: Reply): Body {
  return JSON.parse(text) as Body;
}

export function codeOf(reply: Reply): string | undefined {
  return bodyOf(reply).error?.code;
}

/** A reply that never comes, of a process that will be killed, or one that is looked at later. */
export function begin(reply: Promise<unknown>): void {
  reply.catch(() => {});
}
