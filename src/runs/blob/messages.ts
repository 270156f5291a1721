/** What the event loop and the thread of the blobs say to each other. */
import type { S3Options } from "../../config/blobs.ts";
import type { Backend, Staged } from "./backend.ts";

export type BlobOptions = S3Options | { readonly kind: "folder"; readonly path: string };

/** The functions of a backend that are called with values and answer with one. */
export type Call = Exclude<keyof Backend, "read">;

export type ToBlobs =
  /** `staging`: a folder of this process for what has not come whole; emptied. */
  | { readonly kind: "open"; readonly id: number; readonly options: BlobOptions; readonly staging: string }
  | { readonly kind: "call"; readonly id: number; readonly name: Call; readonly given: readonly unknown[] }
  /** Begins to receive as many bytes. */
  | { readonly kind: "receive"; readonly id: number; readonly stream: number; readonly size: number }
  /** The first `length` bytes of the block, which is given back. */
  | { readonly kind: "piece"; readonly stream: number; readonly block: ArrayBuffer; readonly length: number }
  | { readonly kind: "received"; readonly id: number; readonly stream: number }
  /** Nothing of what was received is kept; also a `Staged` that nobody needs any more. */
  | { readonly kind: "discard"; readonly id: number; readonly stream?: number; readonly staged?: Staged }
  | {
      readonly kind: "read";
      readonly id: number;
      readonly stream: number;
      readonly blob: string;
      readonly from: number;
      readonly to: number;
    }
  | { readonly kind: "pull"; readonly id: number; readonly stream: number }
  | { readonly kind: "stop"; readonly stream: number };

export type FromBlobs =
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown }
  | ({ readonly kind: "failed"; readonly id: number } & Fault)
  /** A block of `piece` is free again; `failed`: nothing more is written. */
  | { readonly kind: "taken"; readonly stream: number; readonly block: ArrayBuffer; readonly failed?: Fault };

export interface Fault {
  readonly reason: string;
  /** The disk has no room. */
  readonly full: boolean;
}
