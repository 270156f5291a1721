/** What was read of a publisher's folder: the same for every layout of every family. */
import type { Problem } from "../../std/problem.ts";
import type { WeightTable } from "./checkpoint-weights.ts";
import type { Described } from "./described.ts";
import type { Policy, Robot } from "./robot-file.ts";
import type { Stored } from "./safetensors.ts";
import type { ExpectedTokenizer } from "./tokenizer.ts";

export interface Found {
  /** Publisher and family, for people. */
  readonly layout: string;
  readonly title: string;
  /** Files that were read beside the weights, by their paths in the folder. */
  readonly files: readonly string[];
  readonly policy: Policy;
  /** Its tokenizer, and the names that its file may have in the folder, the publisher's own first. Absent, it reads no instruction. */
  readonly tokenizer?: ExpectedTokenizer & { readonly files: readonly string[] };
  /** Whether a tensor is of no use when rows are computed. */
  isUnused(name: string): boolean;
  readonly table: WeightTable;
  describe(robot: Robot): Described | Problem;
}

/** A publisher's layout of a family's files. */
export interface Layout {
  /** The name that tables have for a tensor of the checkpoint. */
  plainName(name: string): string;
  /** `tensors`: by their plain names; `licence`: what the folder says of it. */
  read(dir: string, tensors: ReadonlyMap<string, Stored>, licence: string | undefined): Promise<Found | Problem>;
}
