/** Providers that compute wrongly: the CPU plays a GPU (native/src/core/rehearsal.rs), with other graphs or with inputs bound once. */
import { dlopen, FFIType } from "bun:ffi";
import { afterAll } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { decodeModel, encodeModel, type ModelProto } from "../../src/bundle/onnx-schema.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { locateLibraries } from "../../src/engine/library.ts";
import { present } from "../../src/std/assert.ts";
import { emptyDir } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import { engineOfFile, ok } from "./opened.ts";

export interface Rehearsal {
  readonly device: string;
  /** What changed is not bound again. */
  readonly stale?: boolean;
  /** No run ends. */
  readonly hangs?: boolean;
  /** Graphs are run as if they were captured. */
  readonly captures?: boolean;
  /** The time that its first inferences may take, in milliseconds. */
  readonly proof_ms_max?: number;
  /** The time that it takes to open the graphs of a replica, in milliseconds, and that it may take. */
  readonly opens_ms?: number;
  readonly open_ms_max?: number;
  /** A library that plays its driver; without it none is asked. */
  readonly driver?: string;
  /** Graphs that the device runs instead, by their path in the bundle. */
  readonly graphs?: Readonly<Record<string, string>>;
}

/** What the next loads of this process meet; without a rehearsal: the machine as it is. */
export async function rehearse(...devices: readonly Rehearsal[]): Promise<void> {
  const plan = devices.map(({ stale = false, hangs = false, captures = false, ...device }) => ({
    ...device,
    playing: { stale, hangs, captures },
  }));
  await begin({ devices: plan });
}

/**
 * What goes wrong with the next inference, beside the faults that a drill has. `late`: it hangs until others have ended it. `die`: the
 * replica's thread ends. `feed`: a frame cannot be read. `memory`: its device has no memory left.
 */
export async function rehearseFault(fault: "late" | "die" | "feed" | "memory"): Promise<void> {
  await begin({ fault });
}

async function begin(plan: object): Promise<void> {
  const { library } = ok(await locateLibraries());
  const { symbols } = dlopen(library, { tendon_rehearse: { args: [FFIType.ptr, FFIType.u32], returns: FFIType.i32 } });
  const text = Buffer.from(JSON.stringify(plan));
  const status = symbols.tendon_rehearse(text, text.length);
  if (status !== 0) throw new Error(`tendon_rehearse: ${status}`);
}

/** A graph of the bundle with a change, as another file. */
export async function changed(bundle: FlowBundle, file: string, change: (model: ModelProto) => void): Promise<string> {
  return await changedFile(present(bundle.paths.get(file), file), change);
}

/** The same of a file. */
export async function changedFile(from: string, change: (model: ModelProto) => void): Promise<string> {
  const model = decodeModel(await readFile(from));
  change(model);
  const path = join(await emptyDir(), basename(from));
  await writeFile(path, encodeModel(model));
  return path;
}

/** `engineOfFile`, and no rehearsal is left behind the tests. */
export async function rehearsedEngine(): Promise<Engine> {
  afterAll(async () => await rehearse());
  return await engineOfFile();
}

const F32 = 1;
const F16 = 10;
const INT = 2;

/** Turns the sign of one weight: the largest of the tensor. */
export function flipWeight(name: string): (model: ModelProto) => void {
  return ({ graph }) => {
    const tensor = present(
      graph.initializer.find((one) => one.name === name),
      name,
    );
    const bytes = new Uint8Array(tensor.rawData);
    const values = new Float32Array(bytes.buffer);
    const sizes = values.map(Math.abs);
    const at = sizes.indexOf(Math.max(...sizes));
    values[at] = -present(values[at], "a weight");
    tensor.rawData = bytes;
  };
}

/** Weights of more than one dimension. */
export function weightsOf({ graph }: ModelProto): string[] {
  return graph.initializer.filter(({ dims, dataType }) => dataType === F32 && dims.length > 1).map(({ name }) => name);
}

/** Rounds what every matrix product gives to half precision, as a provider does that computes in it. */
export function halfPrecision({ graph }: ModelProto): void {
  graph.node = graph.node.flatMap((node) => {
    const [output] = node.output;
    if (node.opType !== "MatMul" || output === undefined) return [node];
    const [exact, half] = [`${output} exact`, `${output} half`];
    node.output = [exact];
    const cast = (from: string, to: string, type: number) => ({
      name: `${to} cast`,
      opType: "Cast",
      input: [from],
      output: [to],
      attribute: [{ name: "to", type: INT, i: BigInt(type) }],
    });
    return [node, cast(exact, half, F16), cast(half, output, F32)];
  });
}
