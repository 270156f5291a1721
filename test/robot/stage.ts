/** A service with a fake engine, a fake clock and one account, driven without a socket. */
import { afterEach, expect } from "bun:test";
import { newKey } from "../../src/account/key.ts";
import type { OidcConfig } from "../../src/config/oidc.ts";
import { Drills } from "../../src/drill.ts";
import { publicApp } from "../../src/http/app.ts";
import { build, type Service } from "../../src/service/build.ts";
import { type FakeStore, fakeStore, funded } from "../account/fake-store.ts";
import { FakeEngine } from "../fake-engine.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { cartesianManifest, manifest, statefulManifest, vectorManifest } from "./manifests.ts";

export const MODEL = "vendorB/molmoact2:yam";
export const STATEFUL = "vendorA/dreamzero-astra:yam";
export const CARTESIAN = "vendorC/rho:yam";
export const VECTOR = "lab/so101:pick";

/** Nano-dollars: of a kind that no two sums of them are alike. */
export const RATES = { prompt: 1_000n, cachedPrompt: 100n, completion: 1_000_000n };

export interface Stage {
  readonly service: Service;
  /** The app, which a test may serve over a socket. */
  readonly app: ReturnType<typeof publicApp>;
  readonly engine: FakeEngine;
  readonly clock: FakeClock;
  readonly store: FakeStore;
  readonly key: string;
  readonly logLines: string[];
  /** Sends a request to the app. */
  send(path: string, init?: RequestInit): Promise<Response>;
  handle(request: Request): Promise<Response>;
  /** POST of a chat body with the key. */
  chat(body: unknown, init?: RequestInit): Promise<Response>;
  /** Adds an account; what comes back is `chat` with its key. */
  account(id: string): Promise<Stage["chat"]>;
}

/** Those that the running test has made. */
const stages: FakeStore[] = [];

/** After every test its ledger is sound. */
async function expectSoundLedgers(): Promise<void> {
  await Bun.sleep(0);
  for (const store of stages.splice(0)) {
    store.down = false;
    expect(store.report()).toMatchObject({ sum: 0n, problem: undefined });
  }
}

// Proofs use what is here as well, outside of the test runner.
if (process.env.NODE_ENV === "test") afterEach(expectSoundLedgers);

export async function stage(
  options: {
    sessionsMax?: number;
    ingressBytesMax?: number;
    drills?: Drills;
    signUpOpen?: boolean;
    socketSilentSeconds?: number;
    unpaidSeconds?: number;
    oidc?: OidcConfig;
  } = {},
): Promise<Stage> {
  const clock = new FakeClock();
  const engine = new FakeEngine();
  const store = fakeStore();
  stages.push(store);
  const key = await addAccount(store, "acct_1");
  const logLines: string[] = [];
  const note = (event: string, facts: object = {}) => {
    logLines.push(`${event} ${JSON.stringify(facts)}`);
  };
  const { signUpOpen = false, drills = new Drills(), unpaidSeconds, oidc, ...bounds } = options;
  const unpaid = unpaidSeconds === undefined ? {} : { unpaidSeconds };
  const settings = { chunkMs: 10_000, signUpOpen, drills, bounds, oidc, ...unpaid };
  const service = build(settings, { clock, store, log: { info: note, error: note } });
  const { catalog } = service.robot;
  catalog.known = true;
  for (const facts of [manifest(), statefulManifest(), cartesianManifest(), vectorManifest()])
    catalog.add(facts, RATES, engine.model(facts));
  const app = publicApp(service.http, service.surfaces);
  const handle: Stage["handle"] = async (request) => app.handle(request);
  const send: Stage["send"] = (path, init) => handle(new Request(`http://localhost${path}`, init ?? {}));
  const chatOf =
    (key: string): Stage["chat"] =>
    (body, init) =>
      send("/v1/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...init,
      });
  const account: Stage["account"] = async (id) => chatOf(await addAccount(store, id));
  return { service, app, engine, clock, store, key, logLines, handle, send, chat: chatOf(key), account };
}

/** A new account's key. */
export async function addAccount(store: Pick<FakeStore, "accounts">, id: string): Promise<string> {
  await store.accounts.accountAdd(funded(id, `${id}@example.org`));
  return await addKey(store, id);
}

/** A new key of an account. */
export async function addKey({ accounts }: Pick<FakeStore, "accounts">, accountId: string): Promise<string> {
  const { key, record } = newKey(0);
  await accounts.keyAdd({ ...record, accountId, name: "" });
  return key;
}

/** Bytes that begin as a JPEG file does; the fake engine looks no further. */
export function jpeg(bytes = 64): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(bytes).fill(1);
  file.set([0xff, 0xd8, 0xff]);
  return file;
}

export function imageUrl(file: Uint8Array<ArrayBuffer> = jpeg()): string {
  return `data:image/jpeg;base64,${file.toBase64()}`;
}

export function imagePart(url: unknown = imageUrl()): object {
  return { type: "image_url", image_url: { url } };
}

export function textPart(text = "fold the towel"): object {
  return { type: "text", text };
}

export const jointState = { joint_position: Array(12).fill(0.1), gripper_position: [0, 1] };

export const cartesianState = {
  joint_position: [],
  gripper_position: [5, -3],
  cartesian_position: [0.1, 0.2, 0.3, 1, 0, 0, 0, 1, 0, 0.1, 0.2, 0.3, 0, 1, 0, 0, 0, 1],
};

export const vectorState = { state: [10, -20, 30, -40, 50, -60, 0.5] };

/** A right request for the first chunk of `VECTOR`, with top-level changes. */
export function vectorObservation(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const content = [textPart("pick the cube"), imagePart(), imagePart()];
  return { model: VECTOR, messages: [{ role: "user", content }], robot_state: vectorState, ...changes };
}

/** A right request for the first chunk of `MODEL`, with top-level changes; `undefined` removes a field. */
export function observation(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const content = [textPart(), imagePart(), imagePart(), imagePart()];
  return { model: MODEL, messages: [{ role: "user", content }], robot_state: jointState, ...changes };
}

/** `observation` with other parts in its one message. */
export function withContent(content: unknown, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return observation({ messages: [{ role: "user", content }], ...changes });
}
