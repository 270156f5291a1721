/** The id that a bundle is served under: an operator's own, or one of the specification, whose clients rely on its shape. */
import { SPECIFIED_IDS } from "../config/robot.ts";
import { LIMITS } from "../limits.ts";
import { fault, firstBroken } from "./fault.ts";
import type { Manifest } from "./manifest.ts";

/** An id of the operator's own (contract section 12). */
const OWN_ID = /^[a-z0-9][a-z0-9._/:-]{0,127}$/;

/** What a client of a specified id relies on: the state it sends, its images in order, whether it needs a session. */
interface Shape {
  readonly state: Manifest["state"]["kind"];
  readonly cameras: string;
  readonly stateful: boolean;
}

const JOINT: Shape = { state: "joint", cameras: "top, left, right", stateful: false };

/** Contract section 2, Model facts. Ids that are not here have the plain one. */
const SHAPES: Readonly<Record<string, Shape>> = {
  "vendorA/dreamzero-astra:yam": { ...JOINT, stateful: true },
  "vendorC/rho:yam": { state: "cartesian", cameras: "scene, left_wrist, right_wrist", stateful: false },
  "vendorF/picasso:yam": { ...JOINT, stateful: true },
};

/** Values of a row in the action spaces of the specification. */
const ROW_VALUES: Readonly<Record<string, number>> = { joint: 14, cartesian: 20 };

/** The fault of an id that cannot be served, or of a bundle that takes a specified id and has another shape. */
export function idFault({
  id,
  state,
  cameras,
  stateful,
  action,
}: Pick<Manifest, "id" | "state" | "cameras" | "stateful" | "action">): string | undefined {
  if (!SPECIFIED_IDS.includes(id)) {
    const expected = "1 to 128 characters of a-z 0-9 . _ / : - that begin with a letter or digit, or a specified id";
    return OWN_ID.test(id) ? undefined : fault("/id", id, expected);
  }
  const shape = SHAPES[id] ?? JOINT;
  const [names, values, rowsMax] = [cameras.join(", "), ROW_VALUES[shape.state], LIMITS.actionHorizonMax];
  const clause = `, as clients of ${id} rely on it; another shape needs an id of your own`;
  return firstBroken([
    [state.kind === shape.state, "/state/kind", state.kind, `${shape.state}${clause}`],
    [names === shape.cameras, "/cameras", names, `${shape.cameras}${clause}`],
    [stateful === shape.stateful, "/stateful", stateful, `${shape.stateful}${clause}`],
    [action.columns.length === values, "/action/columns", `${action.columns.length} columns`, `${values}${clause}`],
    [action.rows <= rowsMax, "/action/rows", action.rows, `${rowsMax} at most${clause}`],
  ]);
}
