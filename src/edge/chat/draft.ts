/** What the checks of the robot route fill in, and the commands that come out of it. */
import { Failure } from "../../error.ts";
import { present } from "../../std/assert.ts";
import type { JsonObject } from "../json.ts";
import type { Catalog, Served } from "../service.ts";
import type { Content } from "./content.ts";
import type { FrameImage } from "./images.ts";
import type { RobotState } from "./state.ts";

/** A request without images: the model describes itself. */
export interface DescribeCommand {
  readonly kind: "describe";
  readonly served: Served;
  readonly stream: boolean;
}

/** One observation, typed and complete. */
export interface ObserveCommand {
  readonly kind: "observe";
  readonly served: Served;
  readonly instruction: string;
  /** Camera-major, oldest first; empty once the engine has them. */
  readonly images: FrameImage[];
  readonly state: RobotState;
  readonly sessionId: string | undefined;
  readonly observation: IdentifiedObservation | undefined;
  readonly expectedStep: number | undefined;
  /** Rows to answer, 1 to the model's rows per chunk. */
  readonly rows: number;
  readonly seed: number;
  readonly stream: boolean;
}

/** An observation that runs once, however often it is sent. */
export interface IdentifiedObservation {
  readonly id: string;
  /** SHA-256 of the canonical body, 32 bytes. */
  readonly digest: Uint8Array;
}

export class ChatDraft {
  served: Served | undefined;
  messages: readonly unknown[] = [];
  userIndex = 0;
  content: Content = { texts: [], images: [] };
  images: readonly FrameImage[] = [];
  instruction = "";
  state: RobotState | undefined;
  seed = 0;

  constructor(
    readonly body: JsonObject,
    readonly catalog: Catalog,
  ) {}

  /** The model that an earlier check found. */
  get model(): Served {
    return present(this.served, "the served model");
  }

  get stream(): boolean {
    return this.body.stream === true;
  }

  get withImages(): boolean {
    return this.content.images.length > 0;
  }

  /** The field's value; `null` in an optional field equals its absence. */
  optional(name: string): unknown {
    return this.body[name] ?? undefined;
  }

  /** Puts a value that was read in its place, or passes its failure on. */
  keep<T>(read: T | Failure, place: (value: T) => void): Failure | undefined {
    if (read instanceof Failure) return read;
    place(read);
    return undefined;
  }
}
