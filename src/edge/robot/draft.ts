/** What the checks of an observation's fields fill in, on either transport. */
import type { Catalog, Served } from "../../robot/catalog.ts";
import type { RobotState } from "../../robot/state.ts";
import { present } from "../../std/assert.ts";
import type { JsonObject } from "../http/json.ts";

export class FieldDraft {
  instruction = "";
  state: RobotState | undefined;
  sessionId: string | undefined;
  observationId: string | undefined;
  expectedStep: number | undefined;
  /** Rows to answer, where the client says how many. */
  rows: number | undefined;
  inferenceSteps: number | undefined;
  seed = 0;

  constructor(
    readonly body: JsonObject,
    public served: Served | undefined = undefined,
  ) {}

  /** The model that an earlier check found. */
  get model(): Served {
    return present(this.served, "the served model");
  }

  /** The field's value; `null` in an optional field equals its absence. */
  optional(name: string): unknown {
    return this.body[name] ?? undefined;
  }
}

/** Of a message that names its model. */
export class ModelDraft extends FieldDraft {
  constructor(
    body: JsonObject,
    readonly catalog: Catalog,
  ) {
    super(body);
  }
}
