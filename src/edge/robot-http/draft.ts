/** What the checks of the robot route fill in, and the commands that come out of it. */
import { Failure } from "../../error/core.ts";
import type { Catalog, Served } from "../../robot/catalog.ts";
import type { FrameImage } from "../../robot/frames.ts";
import type { RobotState } from "../../robot/state.ts";
import { present } from "../../std/assert.ts";
import type { JsonObject } from "../http/json.ts";
import type { Content } from "./content.ts";

/** A request without images: the model describes itself. */
export interface DescribeCommand {
  readonly kind: "describe";
  readonly served: Served;
  readonly stream: boolean;
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
